"""What the router sees of the cluster, as one value."""

from collections.abc import Mapping, Sequence

import msgspec

from quarterdeck.api.meta import Key, Object


class ObservedRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that routing depends on, and the addresses of external names."""

    ingresses: Sequence[Object] = ()
    services: Mapping[Key, Object] = {}
    slices: Mapping[Key, Sequence[Object]] = {}
    """The EndpointSlices of a Service, by its key."""
    secrets: Mapping[Key, Object] = {}
    """Those of type kubernetes.io/tls."""
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """The labels of each namespace."""
    node_addresses: frozenset[str] = frozenset()
    resolved: Mapping[str, Sequence[str]] = {}
    """The addresses of external names that were resolved."""
    left_out: frozenset[str] = frozenset()
    """The uids of Ingress objects that HAProxy refused; they keep their hosts."""


class Problem(msgspec.Struct, frozen=True):
    """Why an object, or a part of it, is skipped: the event on it."""

    about: Object
    reason: str
    message: str
