"""Proxy: the cluster's proxy for outgoing requests."""

import msgspec

from quarterdeck.api.custom_resource import ALL_PROFILES, CATEGORY, Column, CustomResource
from quarterdeck.api.meta import Part, TypedObject, always


class ConfigMapNameReference(Part):
    """A ConfigMap in the namespace `openshift-config`."""

    name: str
    """The ConfigMap's name; empty for none."""


class ProxySpec(Part):
    """The desired proxy."""

    http_proxy: str | None = None
    """The URL of the proxy for HTTP requests. Empty or absent means none."""

    https_proxy: str | None = None
    """The URL of the proxy for HTTPS requests. Empty or absent means none."""

    no_proxy: str | None = None
    """Hosts, domains, addresses and networks to reach without the proxy, separated by commas."""

    readiness_endpoints: tuple[str, ...] = ()
    """URLs that must be reachable through the proxy before it is used."""

    trusted_ca: ConfigMapNameReference | None = msgspec.field(default=None, name="trustedCA")
    """The ConfigMap with certificate authorities to trust in addition to the system's, in the key
    `ca-bundle.crt`. A proxy that re-encrypts connections needs it."""


class ProxyStatus(Part):
    """The proxy that is in use."""

    http_proxy: str | None = None
    """The URL of the proxy in use for HTTP requests."""

    https_proxy: str | None = None
    """The URL of the proxy in use for HTTPS requests."""

    no_proxy: str | None = None
    """What is reached without the proxy: the entries of the spec, and the cluster's own
    networks."""


class Proxy(TypedObject):
    """The cluster-wide proxy. The only object in effect is `cluster`."""

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("Proxy")

    spec: ProxySpec
    """The desired proxy."""

    status: ProxyStatus = ProxyStatus()
    """The proxy that is in use."""


PROXIES = CustomResource(
    group="config.openshift.io",
    categories=(CATEGORY,),
    version="v1",
    kind="Proxy",
    plural="proxies",
    namespaced=False,
    type=Proxy,
    columns=(
        Column("HTTP", ".status.httpProxy", "The proxy in use for HTTP."),
        Column("HTTPS", ".status.httpsProxy", "The proxy in use for HTTPS."),
        Column("No-Proxy", ".status.noProxy", "What is reached directly.", priority=1),
    ),
    profiles=ALL_PROFILES,
)
