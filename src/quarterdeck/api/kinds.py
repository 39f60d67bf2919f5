"""All our kinds.

They are found in the modules of API groups (`<group>_<version>`) in this package, so that a new
kind is declared in one place.
"""

import importlib
import pkgutil
import re
from typing import Any

from quarterdeck import api
from quarterdeck.api.custom_resource import CustomResource


def _found() -> dict[str, CustomResource[Any]]:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(api.__path__, f"{api.__name__}.")
        if re.search(r"_v\d\w*$", module.name)
    ]
    return {
        value.crd_name: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, CustomResource)
    }


KINDS: tuple[CustomResource[Any], ...] = tuple(kind for _, kind in sorted(_found().items()))
