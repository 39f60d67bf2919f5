"""The containers of metal3's pod. Pure.

| container | not there |
|---|---|
| dnsmasq, which serves DHCP and PXE | if the network is Disabled |
| static-ip-manager, static-ip-set (init), which keep the address on the interface | without one |

They talk to each other over the host's network, and share a directory for images.
"""

from quarterdeck.api.meta import Object
from quarterdeck.api.metal3_v1alpha1 import ProvisioningNetwork, ProvisioningSpec
from quarterdeck.metal3 import network
from quarterdeck.metal3.images import Images
from quarterdeck.metal3.names import PASSWORD_KEY, PASSWORD_SECRET

SHARED = "metal3-shared"
HTTP_PORT = "6180"
METRICS_PORT = 60000
RAMDISK = f"http://localhost:{HTTP_PORT}/images/ironic-python-agent"
Env = dict[str, str]


def desired_containers(spec: ProvisioningSpec, images: Images) -> list[Object]:
    """The containers that run."""
    ironic, inspector = images.baremetal_ironic, images.baremetal_ironic_inspector
    host = _host(spec)
    boot = {"HTTP_PORT": HTTP_PORT, **host, "IP_OPTIONS": network.ip_options(spec)}
    watch_logs = "/bin/runlogwatch.sh"
    found = [_baremetal_operator(spec, images.baremetal_operator)]
    if spec.network != ProvisioningNetwork.DISABLED:
        dhcp = {"DHCP_RANGE": network.dhcp_range(spec)} if network.dhcp_range(spec) else {}
        found.append(_container("metal3-dnsmasq", ironic, "/bin/rundnsmasq", boot | dhcp))
    found += [
        _with_password(_container("metal3-mariadb", ironic, "/bin/runmariadb", {})),
        _container("metal3-httpd", ironic, "/bin/runhttpd", boot),
        _with_password(
            _container("metal3-ironic-conductor", ironic, "/bin/runironic-conductor", boot)
        ),
        _with_password(_container("metal3-ironic-api", ironic, "/bin/runironic-api", boot)),
        _container("metal3-ironic-inspector", inspector, "", host),
        _container("metal3-ironic-inspector-ramdisk-logs", inspector, watch_logs, {}),
        _container("metal3-ironic-deploy-ramdisk-logs", ironic, watch_logs, {}),
    ]
    if network.has_network(spec):
        manager = images.baremetal_static_ip_manager
        found.append(_container("metal3-static-ip-manager", manager, "/refresh-static-ip", host))
    return found


def desired_init_containers(spec: ProvisioningSpec, images: Images) -> list[Object]:
    """The containers that run before: the address of the host, then the downloads."""
    found: list[Object] = []
    if network.has_network(spec):
        manager = images.baremetal_static_ip_manager
        found.append(_container("metal3-static-ip-set", manager, "/set-static-ip", _host(spec)))
    get, url = "/usr/local/bin/get-resource.sh", spec.provisioning_os_download_url or ""
    ipa, os = images.baremetal_ipa_downloader, images.baremetal_machine_os_downloader
    found.append(_container("metal3-ipa-downloader", ipa, get, {}))
    found.append(_container("metal3-machine-os-downloader", os, get, {"RHCOS_IMAGE_URL": url}))
    return found


def _baremetal_operator(spec: ProvisioningSpec, image: str) -> Object:
    env = {
        "OPERATOR_NAME": "baremetal-operator",
        "DEPLOY_KERNEL_URL": f"{RAMDISK}.kernel",
        "DEPLOY_RAMDISK_URL": f"{RAMDISK}.initramfs",
        "IRONIC_ENDPOINT": "http://localhost:6385/v1/",
        "IRONIC_INSPECTOR_ENDPOINT": "http://localhost:5050/v1/",
    }
    container = _container("metal3-baremetal-operator", image, "/baremetal-operator", env)
    # It only talks to the API server and to Ironic.
    del container["securityContext"], container["volumeMounts"]
    watched: Object = {"name": "WATCH_NAMESPACE", **_from_pod("metadata.namespace")}
    if spec.watch_all_namespaces:
        watched = {"name": "WATCH_NAMESPACE", "value": ""}
    container["env"] += [watched, {"name": "POD_NAME", **_from_pod("metadata.name")}]
    container["ports"] = [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}]
    return container


def _container(name: str, image: str, command: str, env: Env) -> Object:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        **({"command": [command]} if command else {}),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": {"requests": {"cpu": "5m", "memory": "50Mi"}},
        # They set up interfaces and serve DHCP on the host's network.
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": SHARED, "mountPath": "/shared"}],
    }


def _with_password(container: Object) -> Object:
    source = {"secretKeyRef": {"name": PASSWORD_SECRET, "key": PASSWORD_KEY}}
    password = {"name": "MARIADB_PASSWORD", "valueFrom": source}
    return {**container, "env": [password, *container["env"]]}


def _from_pod(path: str) -> Object:
    # With the server's default, as the fields of an entry are compared as they are.
    return {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _host(spec: ProvisioningSpec) -> Env:
    """The host's interface and address in the provisioning network, as far as there are some."""
    found = {
        "PROVISIONING_INTERFACE": spec.provisioning_interface or "",
        "PROVISIONING_IP": network.provisioning_ip(spec),
    }
    return {name: value for name, value in found.items() if value}
