"""The CEL rules of our CRDs, on a real API server: what each refuses, with which words."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS, FEATURE_GATES, INFRASTRUCTURES
from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.metal3_v1alpha1 import PROVISIONINGS
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS
from quarterdeck.localcluster.api_request import ComponentResponse
from quarterdeck.localcluster.controlplane import ControlPlane

Object = dict[str, Any]
Send = Callable[[str, CustomResource[Any], Object, str], ComponentResponse]

V4, V4_TOO, V6 = "192.0.2.1", "192.0.2.2", "2001:db8::1"
SINGLETON = "ClusterVersionOperator is a singleton; the .metadata.name field must be 'cluster'"
ONE_PER_FAMILY = "at most one IPv4 address and one IPv6 address"


@pytest.fixture
def send(control_plane: ControlPlane, crds: list[str]) -> Iterator[Send]:
    """Sends an object to its place; what was created is gone after the test."""
    requests = control_plane.requests()
    created: list[str] = []

    def carry_out(
        method: str, kind: CustomResource[Any], thing: Object, subresource: str
    ) -> ComponentResponse:
        name = "" if method == "POST" else thing["metadata"]["name"]
        path = kind.path(name=name, subresource=subresource)
        answer = requests.send(method, f"{path}?fieldValidation=Strict", json.dumps(thing).encode())
        if method == "POST" and answer.ok:
            created.append(kind.path(name=thing["metadata"]["name"]))
        return answer

    yield carry_out
    for path in created:
        requests.send("DELETE", path)


def check(answer: ComponentResponse, field: str, refused: str | None) -> None:
    """That a good object was taken, and a bad one refused with the field's name and these words."""
    if refused is None:
        assert answer.ok, answer.json()["message"]
    else:
        assert answer.status == 422, "was accepted"
        assert f"{field}: " in answer.json()["message"]
        assert refused in answer.json()["message"]


def made(kind: CustomResource[Any], parts: Object, name: str = "cluster") -> Object:
    named = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
    return {"spec": {}, **named, **parts}


def update(**desired: str) -> Object:
    return {"clusterID": "x", "desiredUpdate": desired}


def capabilities(baseline: str | None, *additional: str) -> Object:
    wanted: Object = {"additionalEnabledCapabilities": list(additional)}
    if baseline:
        wanted["baselineCapabilitySet"] = baseline
    return {"clusterID": "x", "capabilities": wanted}


def baremetal(**details: list[str]) -> Object:
    return {"platformSpec": {"type": "BareMetal", "baremetal": details}}


@pytest.mark.parametrize(
    ("kind", "spec", "field", "refused"),
    [
        pytest.param(
            CLUSTER_VERSIONS,
            update(architecture="Multi", version="4.7.0"),
            "",
            None,
            id="an architecture goes with a version",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            update(architecture="Multi"),
            "spec.desiredUpdate",
            "version must be set if architecture is set",
            id="an architecture needs a version",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            update(architecture="Multi", version=""),
            "spec.desiredUpdate",
            "version must be set if architecture is set",
            id="an empty version is none",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            update(architecture="Multi", version="4.7.0", image="i"),
            "spec.desiredUpdate",
            "architecture and image cannot both be set",
            id="an architecture excludes an image",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            update(architecture="", image="i"),
            "",
            None,
            id="an empty architecture goes with an image",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            update(architecture="Multi", version="4.7.0", image=""),
            "",
            None,
            id="an architecture goes with an empty image",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            capabilities("None", "marketplace"),
            "spec.capabilities.additionalEnabledCapabilities",
            "needs the OperatorLifecycleManager capability",
            id="marketplace alone is not enough",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            capabilities("None", "marketplace", "OperatorLifecycleManager"),
            "",
            None,
            id="marketplace with what it needs",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            capabilities("vCurrent", "marketplace"),
            "",
            None,
            id="marketplace with a baseline that has what it needs",
        ),
        pytest.param(
            CLUSTER_VERSIONS,
            capabilities(None, "marketplace"),
            "",
            None,
            id="marketplace with the default baseline",
        ),
        pytest.param(
            INFRASTRUCTURES,
            baremetal(apiServerInternalIPs=[V4, V6], ingressIPs=[V6, V4]),
            "",
            None,
            id="one address of each family",
        ),
        pytest.param(
            INFRASTRUCTURES,
            baremetal(apiServerInternalIPs=[V4, V4_TOO]),
            "spec.platformSpec.baremetal.apiServerInternalIPs",
            ONE_PER_FAMILY,
            id="two addresses of one family for the API server",
        ),
        pytest.param(
            INFRASTRUCTURES,
            baremetal(ingressIPs=[V6, "2001:db8::2"]),
            "spec.platformSpec.baremetal.ingressIPs",
            ONE_PER_FAMILY,
            id="two addresses of one family for ingress",
        ),
        pytest.param(
            INFRASTRUCTURES,
            baremetal(ingressIPs=["192.0.2.256"]),
            "spec.platformSpec.baremetal.ingressIPs[0]",
            "value must be a valid IP address",
            id="not an address",
        ),
        pytest.param(
            INFRASTRUCTURES,
            baremetal(machineNetworks=["192.0.2.0"]),
            "spec.platformSpec.baremetal.machineNetworks[0]",
            "value must be a valid CIDR network address",
            id="an address is not a network",
        ),
        pytest.param(
            INFRASTRUCTURES,
            baremetal(machineNetworks=["192.0.2.0/24", "192.0.2.0/24"]),
            "spec.platformSpec.baremetal.machineNetworks",
            "networks must be unique",
            id="the same network twice",
        ),
    ],
)
def test_creation(
    send: Send, kind: CustomResource[Any], spec: Object, field: str, refused: str | None
) -> None:
    check(send("POST", kind, made(kind, {"spec": spec}), ""), field, refused)


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        pytest.param("cluster", None, id="the one"),
        pytest.param("version", SINGLETON, id="another"),
    ],
)
def test_there_is_one_cluster_version_operator(send: Send, name: str, refused: str | None) -> None:
    """In the document's words."""
    kind = CLUSTER_VERSION_OPERATORS
    answer = send("POST", kind, made(kind, {}, name), "")
    if refused is None:
        assert answer.ok
    else:
        assert answer.status == 422
        assert refused in answer.json()["message"]


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        pytest.param("provisioning-configuration", None, id="the one"),
        pytest.param("cluster", "its name must be 'provisioning-configuration'", id="another"),
    ],
)
def test_there_is_one_provisioning(send: Send, name: str, refused: str | None) -> None:
    answer = send("POST", PROVISIONINGS, made(PROVISIONINGS, {}, name), "")
    assert answer.ok is (refused is None)
    assert refused is None or refused in answer.json()["message"]


def feature_set(name: str) -> Object:
    return {"featureSet": name}


def found_ips(*addresses: str) -> Object:
    return {"platformStatus": {"baremetal": {"ingressIPs": list(addresses)}}}


def load_balancer(type_: str) -> Object:
    return {"platformStatus": {"baremetal": {"loadBalancer": {"type": type_}}}}


FEATURE_SETS = ("", "OKD", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade")
INGRESS_IPS = "status.platformStatus.baremetal.ingressIPs"
BALANCER = "status.platformStatus.baremetal.loadBalancer.type"


def feature_set_rule(old: str, new: str) -> str | None:
    if old.endswith("NoUpgrade") and new != old:
        return f"{old} may not be changed"
    return "OKD cannot transition to Default" if (old, new) == ("OKD", "") else None


@pytest.mark.parametrize(
    ("kind", "part", "old", "new", "field", "refused"),
    [
        *(
            pytest.param(
                FEATURE_GATES,
                "spec",
                feature_set(old),
                feature_set(new),
                "spec.featureSet",
                feature_set_rule(old, new),
                id=f"feature set {old or 'Default'} to {new or 'Default'}",
            )
            for old in FEATURE_SETS
            for new in FEATURE_SETS
        ),
        *(
            pytest.param(
                FEATURE_GATES,
                "spec",
                feature_set(old),
                {},
                "spec.featureSet",
                ".spec.featureSet cannot be removed",
                id=f"feature set {old or 'Default'} removed",
            )
            for old in FEATURE_SETS
        ),
        pytest.param(
            FEATURE_GATES,
            "spec",
            {},
            feature_set("TechPreviewNoUpgrade"),
            "",
            None,
            id="a feature set where there was none",
        ),
        pytest.param(
            CLUSTER_VERSION_OPERATORS,
            "status",
            {"observedGeneration": 3},
            {"observedGeneration": 2},
            "status.observedGeneration",
            "observedGeneration must only increase",
            id="an observed generation that decreases",
        ),
        pytest.param(
            CLUSTER_VERSION_OPERATORS,
            "status",
            {"observedGeneration": 3},
            {"observedGeneration": 3},
            "",
            None,
            id="an observed generation that stays",
        ),
        pytest.param(
            CLUSTER_VERSION_OPERATORS,
            "status",
            {"observedGeneration": 3},
            {"observedGeneration": 40},
            "",
            None,
            id="an observed generation that increases",
        ),
        pytest.param(
            INFRASTRUCTURES,
            "spec",
            baremetal(apiServerInternalIPs=[V4], ingressIPs=[V4]),
            baremetal(ingressIPs=[V4]),
            "spec.platformSpec.baremetal.apiServerInternalIPs",
            "apiServerInternalIPs cannot be removed once set",
            id="the API server's addresses removed",
        ),
        pytest.param(
            INFRASTRUCTURES,
            "spec",
            baremetal(apiServerInternalIPs=[V4], ingressIPs=[V4]),
            baremetal(apiServerInternalIPs=[V4]),
            "spec.platformSpec.baremetal.ingressIPs",
            "ingressIPs cannot be removed once set",
            id="the addresses of ingress removed",
        ),
        pytest.param(
            INFRASTRUCTURES,
            "spec",
            baremetal(apiServerInternalIPs=[V4], ingressIPs=[V4]),
            baremetal(apiServerInternalIPs=[], ingressIPs=[V6]),
            "",
            None,
            id="addresses emptied and changed",
        ),
        pytest.param(
            INFRASTRUCTURES,
            "status",
            found_ips(V4),
            found_ips(V4, V4_TOO),
            INGRESS_IPS,
            ONE_PER_FAMILY,
            id="a second address of a family found",
        ),
        pytest.param(
            INFRASTRUCTURES,
            "status",
            found_ips(V4, V4_TOO),
            found_ips(V4, V4_TOO),
            "",
            None,
            id="two addresses of a family that were there before stay",
        ),
        pytest.param(
            INFRASTRUCTURES,
            "status",
            load_balancer("UserManaged"),
            load_balancer("OpenShiftManagedDefault"),
            BALANCER,
            "type is immutable once set",
            id="the load balancer changes hands",
        ),
        pytest.param(
            INFRASTRUCTURES,
            "status",
            load_balancer("UserManaged"),
            load_balancer("UserManaged"),
            "",
            None,
            id="the load balancer stays",
        ),
    ],
)
def test_change(
    send: Send,
    kind: CustomResource[Any],
    part: str,
    old: Object,
    new: Object,
    field: str,
    refused: str | None,
) -> None:
    """What may become of what: each case is an object that is there, and its replacement."""
    subresource = "status" if part == "status" else ""
    before = send("POST", kind, made(kind, {part: old}), "")
    assert before.ok, before.json()["message"]
    if subresource:
        before = send("PUT", kind, before.json() | {part: old}, subresource)
        assert before.ok, before.json()["message"]
    check(send("PUT", kind, before.json() | {part: new}, subresource), field, refused)


def test_marketplace_is_enough_where_what_it_needs_was_enabled_before(send: Send) -> None:
    """A capability that is enabled in the status stays, so it need not be asked for again."""
    kind = CLUSTER_VERSIONS
    spec = capabilities("None", "marketplace", "OperatorLifecycleManager")
    created = send("POST", kind, made(kind, {"spec": spec}, "version"), "")
    assert created.ok, created.json()["message"]
    status = {
        "desired": {"version": "4.7.0", "image": "i"},
        "availableUpdates": None,
        "observedGeneration": 1,
        "versionHash": "",
        "capabilities": {"enabledCapabilities": ["OperatorLifecycleManager"]},
    }
    reported = send("PUT", kind, created.json() | {"status": status}, "status")
    assert reported.ok, reported.json()["message"]
    spec = capabilities("None", "marketplace")
    check(send("PUT", kind, reported.json() | {"spec": spec}, ""), "", None)
