"""Additions to a router's pod, and how the modules of fields are found. Pure."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from quarterdeck.api.meta import Object, Part


class AdditionContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an addition may depend on besides its own field."""

    controller: str
    """The name of the IngressController."""
    image: str
    """The image of the router, which also has what sidecars run."""
    datagram: bool = False
    """Whether lines to a sidecar go through the lossy datagram socket."""
    omstdout: bool = False
    """Whether rsyslog writes to its output by the module omstdout, and not as to a file."""


class Additions(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a pod, and the ConfigMaps that they need."""

    environment: Mapping[str, str] = {}
    """Variables of the router, as the router is to read them."""
    volumes: tuple[Object, ...] = ()
    mounts: tuple[Object, ...] = ()
    """Volume mounts of the router."""
    sidecars: tuple[Object, ...] = ()
    config_maps: Mapping[str, Mapping[str, str]] = {}
    """The data of ConfigMaps in the pod's namespace, by name."""


def joined(some: Iterable[Additions]) -> Additions:
    """All of them in one."""
    some = list(some)
    return Additions(
        environment={name: value for one in some for name, value in one.environment.items()},
        volumes=tuple(volume for one in some for volume in one.volumes),
        mounts=tuple(mount for one in some for mount in one.mounts),
        sidecars=tuple(sidecar for one in some for sidecar in one.sidecars),
        config_maps={name: data for one in some for name, data in one.config_maps.items()},
    )


def additions_of_fields(package: str, part: Part, context: AdditionContext) -> Additions:
    """What the fields of a part add, each by the module of its name in this package."""
    given = {name: getattr(part, name) for name in part.__struct_fields__}
    return joined(
        additions_of_field(package, name, value, context)
        for name, value in given.items()
        if value is not None
    )


def additions_of_field(package: str, field: str, value: Any, context: AdditionContext) -> Additions:
    """What one field adds."""
    made: Callable[[Any, AdditionContext], Additions] = importlib.import_module(
        f"{package}.{field}"
    ).additions
    return made(value, context)
