"""The variables of the cluster's proxy. Pure."""

from collections.abc import Mapping

from quarterdeck.api.config_v1 import Proxy


def proxy_variables(proxy: Proxy | None) -> Mapping[str, str]:
    """The variables of the cluster's proxy, those that are set; empty without a proxy.

    They come from the status. Where nobody writes the status, as on plain Kubernetes, they come
    from the spec.
    """
    if proxy is None:
        return {}
    status, spec = proxy.status, proxy.spec
    in_use = status if status.http_proxy or status.https_proxy or status.no_proxy else spec
    values = {
        "HTTP_PROXY": in_use.http_proxy,
        "HTTPS_PROXY": in_use.https_proxy,
        "NO_PROXY": in_use.no_proxy,
    }
    return {name: value for name, value in values.items() if value}
