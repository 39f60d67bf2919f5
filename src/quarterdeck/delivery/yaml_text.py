"""Objects as the text of generated files, the same in every run. Pure."""

from collections.abc import Iterable

import yaml

from quarterdeck.api.meta import Object

HEADER = "# Generated from what its operator declares: change that, and generate again.\n"


class _ManifestDumper(yaml.CSafeDumper):
    """Writes no references within a document."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def text(objects: Iterable[Object]) -> str:
    """The objects as YAML, the same in every run."""
    return yaml.dump_all(objects, Dumper=_ManifestDumper, sort_keys=False, width=100)
