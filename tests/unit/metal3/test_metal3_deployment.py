"""metal3's Deployment for each network mode, both address families, and both owners."""

import base64
import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from tests.unit.metal3.test_metal3_validation import DISABLED, IPV6, MANAGED

from quarterdeck.api.meta import Key, Object, ObjectMeta
from quarterdeck.api.metal3_v1alpha1 import Provisioning, ProvisioningSpec
from quarterdeck.metal3.deployment import desired_deployment, template_hash
from quarterdeck.metal3.images import NAMES, MissingImages, desired_config_map, images_in
from quarterdeck.metal3.names import BAREMETAL_OWNS, MACHINE_API_OWNS
from quarterdeck.metal3.password import new_secret

KEY = Key("ns", "images")


def made(
    spec: ProvisioningSpec, owner: str = BAREMETAL_OWNS, current: Object | None = None
) -> Object:
    provisioning = Provisioning(metadata=ObjectMeta(name="p", uid="u"), spec=spec)
    return desired_deployment(
        provisioning, NAMES, owner=owner, current=current, deadline=timedelta(minutes=5)
    )


def pod_spec(spec: ProvisioningSpec) -> Any:
    return made(spec)["spec"]["template"]["spec"]


def containers_of(pod: Any) -> list[Any]:
    return [*pod["containers"], *pod["initContainers"]]


def env(spec: ProvisioningSpec, container: str) -> dict[str, str]:
    (one,) = (one for one in containers_of(pod_spec(spec)) if one["name"] == container)
    return {variable["name"]: variable.get("value", "from") for variable in one["env"]}


UNMANAGED = msgspec.structs.replace(MANAGED, provisioning_network="Unmanaged")
UNMANAGED_IPV6 = msgspec.structs.replace(IPV6, provisioning_network="Unmanaged")
WITH_IP = msgspec.structs.replace(MANAGED, provisioning_network="Disabled")
WITH_IPV6 = msgspec.structs.replace(IPV6, provisioning_network="Disabled")


@pytest.mark.parametrize(
    ("spec", "containers", "init_containers", "lacks"),
    [
        pytest.param(MANAGED, 10, 3, set(), id="managed"),
        pytest.param(IPV6, 10, 3, set(), id="managed, IPv6"),
        pytest.param(UNMANAGED, 10, 3, set(), id="unmanaged"),
        pytest.param(UNMANAGED_IPV6, 10, 3, set(), id="unmanaged, IPv6"),
        pytest.param(WITH_IP, 9, 3, {"metal3-dnsmasq"}, id="disabled"),
        pytest.param(WITH_IPV6, 9, 3, {"metal3-dnsmasq"}, id="disabled, IPv6"),
        pytest.param(
            DISABLED,
            8,
            2,
            {"metal3-dnsmasq", "metal3-static-ip-manager", "metal3-static-ip-set"},
            id="disabled, without an address",
        ),
    ],
)
def test_the_containers_of_each_mode(
    spec: ProvisioningSpec, containers: int, init_containers: int, lacks: set[str]
) -> None:
    found = pod_spec(spec)
    assert len(found["containers"]) == containers
    assert len(found["initContainers"]) == init_containers
    everything = pod_spec(MANAGED)
    names = {one["name"] for one in containers_of(everything)}
    there = {one["name"] for one in containers_of(found)}
    assert names - there == lacks


BOOT = {"metal3-httpd", "metal3-ironic-conductor", "metal3-ironic-api"}
"""The containers that know how machines boot, in every mode."""
ON_THE_NETWORK = {"metal3-ironic-inspector", "metal3-static-ip-manager", "metal3-static-ip-set"}
"""Those that know only the address."""
V4, V6 = "172.30.20.3/24", "fd2e:6f44:5dd8:b856::2/80"
RANGE_4 = "172.30.20.11,172.30.20.101,24"
RANGE_6 = "fd2e:6f44:5dd8:b856::3,fd2e:6f44:5dd8:b856::ff,80"


@pytest.mark.parametrize(
    ("spec", "address", "dhcp", "options"),
    [
        pytest.param(MANAGED, V4, RANGE_4, "ip=dhcp", id="managed, IPv4"),
        pytest.param(IPV6, V6, RANGE_6, "ip=dhcp6", id="managed, IPv6"),
        pytest.param(UNMANAGED, V4, None, "ip=dhcp", id="unmanaged, IPv4"),
        pytest.param(UNMANAGED_IPV6, V6, None, "ip=dhcp6", id="unmanaged, IPv6"),
        pytest.param(WITH_IP, V4, None, "ip=dhcp", id="disabled, IPv4"),
        pytest.param(WITH_IPV6, V6, None, "ip=dhcp6", id="disabled, IPv6"),
    ],
)
def test_the_environment_of_each_mode_and_family(
    spec: ProvisioningSpec, address: str, dhcp: str | None, options: str
) -> None:
    """Also if the range is set in a mode in which metal3 serves no DHCP."""
    host = {"PROVISIONING_IP": address, "PROVISIONING_INTERFACE": "eth0"}
    pod = pod_spec(spec)
    found = {one["name"]: env(spec, one["name"]) for one in containers_of(pod)}
    dnsmasq = {"metal3-dnsmasq"} & found.keys()
    assert bool(dnsmasq) == (spec.provisioning_network != "Disabled")
    for name in BOOT | dnsmasq:
        assert found[name].items() >= {**host, "IP_OPTIONS": options}.items()
    for name in ON_THE_NETWORK:
        assert found[name] == host
    ranges = {name: one["DHCP_RANGE"] for name, one in found.items() if "DHCP_RANGE" in one}
    assert ranges == ({"metal3-dnsmasq": dhcp} if dhcp else {})


def test_without_an_address_no_container_names_one() -> None:
    for one in containers_of(pod_spec(DISABLED)):
        found = env(DISABLED, one["name"])
        assert not {"PROVISIONING_IP", "PROVISIONING_INTERFACE", "DHCP_RANGE"} & found.keys()
        assert found.get("IP_OPTIONS") == ("ip=dhcp" if one["name"] in BOOT else None)


def test_the_urls_of_the_ramdisk_and_of_the_image() -> None:
    operator = env(MANAGED, "metal3-baremetal-operator")
    assert operator["DEPLOY_KERNEL_URL"].endswith(":6180/images/ironic-python-agent.kernel")
    assert operator["DEPLOY_RAMDISK_URL"].endswith(":6180/images/ironic-python-agent.initramfs")
    assert operator["WATCH_NAMESPACE"] == "from"
    everywhere = msgspec.structs.replace(MANAGED, watch_all_namespaces=True)
    assert env(everywhere, "metal3-baremetal-operator")["WATCH_NAMESPACE"] == ""
    url = env(MANAGED, "metal3-machine-os-downloader")["RHCOS_IMAGE_URL"]
    assert url == MANAGED.provisioning_os_download_url


def test_it_runs_once_on_the_control_plane_and_is_never_evicted_first() -> None:
    found = made(MANAGED)["spec"]
    assert (found["replicas"], found["strategy"]) == (1, {"type": "Recreate"})
    assert found["progressDeadlineSeconds"] == 300
    pod = found["template"]["spec"]
    assert (pod["hostNetwork"], pod["priorityClassName"]) == (True, "system-node-critical")
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = [term["matchExpressions"][0]["key"] for term in required["nodeSelectorTerms"]]
    assert keys == ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]


def test_both_owners_want_the_same_template() -> None:
    ours, theirs = made(MANAGED, BAREMETAL_OWNS), made(MANAGED, MACHINE_API_OWNS)
    assert template_hash(ours) == template_hash(theirs)
    assert ours["metadata"]["annotations"] == {BAREMETAL_OWNS: ""}
    assert theirs["metadata"]["annotations"] == {MACHINE_API_OWNS: ""}


def test_an_existing_selector_is_kept_and_the_pods_match_it() -> None:
    current = {"spec": {"selector": {"matchLabels": {"k8s-app": "controller"}}}}
    found = made(MANAGED, current=current)["spec"]
    assert found["selector"] == {"matchLabels": {"k8s-app": "controller"}}
    assert found["template"]["metadata"]["labels"]["k8s-app"] == "controller"


def test_two_passwords_differ_and_have_16_letters_and_digits() -> None:
    first, second = (base64.b64decode(new_secret()["data"]["password"]).decode() for _ in range(2))
    assert first != second
    assert re.fullmatch("[A-Za-z0-9]{16}", first)


def test_images_are_read_from_the_config_map_of_a_release() -> None:
    assert images_in(desired_config_map(KEY), KEY) == NAMES


@pytest.mark.parametrize(
    ("config_map", "message"),
    [
        pytest.param(None, "not found", id="none"),
        pytest.param({}, "images.json", id="an empty one"),
        pytest.param({"data": {"images.json": "{"}}, "images.json", id="no JSON"),
        pytest.param({"data": {"images.json": "{}"}}, "baremetalOperator", id="no images"),
        pytest.param({"data": {"images.json": '{"x":' + "[" * 99_999}}, "images.json", id="deep"),
    ],
)
def test_missing_images_are_named(config_map: Object | None, message: str) -> None:
    with pytest.raises(MissingImages, match=message):
        images_in(config_map, KEY)


@pytest.mark.parametrize("image", ["", " ", " ironic", "ironic\nx", "$(HOSTNAME)", "a" * 600])
def test_what_is_no_image_is_refused(image: str) -> None:
    """A roll-out to it would stop the pod that runs, and start none."""
    images = msgspec.structs.replace(NAMES, baremetal_ironic=image)
    with pytest.raises(MissingImages, match=r"baremetalIronic: .*: name an image") as raised:
        images_in(desired_config_map(KEY, images), KEY)
    assert len(str(raised.value)) < 200


def test_an_image_by_its_digest_is_one() -> None:
    image = f"registry.example.test:5000/metal3/ironic@sha256:{'0' * 64}"
    images = msgspec.structs.replace(NAMES, baremetal_ironic=image)
    assert images_in(desired_config_map(KEY, images), KEY) == images
