"""What a person with kubectl sees of our kinds."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.objects import cluster_operator
from tests.places import DEPLOY

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.docstrings import class_description
from quarterdeck.api.kinds import KINDS
from quarterdeck.localcluster.controlplane import ControlPlane

CRDS = DEPLOY / "crds"


@pytest.fixture
def cluster(control_plane: ControlPlane, crds: list[str], clean_cluster: None) -> ControlPlane:
    """The control plane with our CRDs; what a test makes in it goes with the test."""
    return control_plane


def test_the_crds_are_applied_without_a_warning(cluster: ControlPlane) -> None:
    """By server-side apply, as `kubectl apply --server-side -f deploy/crds` does."""
    applied = cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", str(CRDS)
    )
    assert applied.stderr == ""
    assert len(applied.stdout.splitlines()) == len(KINDS)


def test_the_crds_are_established_under_their_names(cluster: ControlPlane) -> None:
    listed = json.loads(cluster.kubectl("get", "crds", "-o", "json").stdout)["items"]
    conditions = {
        crd["metadata"]["name"]: {
            condition["type"]: condition["status"] for condition in crd["status"]["conditions"]
        }
        for crd in listed
    }
    for kind in KINDS:
        assert conditions[kind.crd_name]["Established"] == "True"
        assert conditions[kind.crd_name]["NamesAccepted"] == "True"
        # Set where a schema is not structural.
        assert "NonStructuralSchema" not in conditions[kind.crd_name]


def test_explain_says_what_the_log_level_does(cluster: ControlPlane) -> None:
    explained = cluster.kubectl("explain", "clusterversionoperator.spec").stdout
    assert "The configuration of the cluster version operator." in explained
    assert "operatorLogLevel\t<string>" in explained
    assert "- Debug: each decision, and why a manifest was skipped." in explained


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_explain_knows_every_kind(cluster: ControlPlane, kind: CustomResource[Any]) -> None:
    """The type's docstring is what it says."""
    explained = cluster.kubectl("explain", f"{kind.plural}.{kind.group}").stdout
    assert f"KIND:       {kind.kind}" in explained
    said = " ".join(explained.split())
    assert " ".join(class_description(kind.type).split()) in said


def condition(type_: str, status: str, message: str, since: datetime) -> dict[str, str]:
    return {
        "type": type_,
        "status": status,
        "message": message,
        "reason": "AsExpected",
        "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


@pytest.fixture
def dns(cluster: ControlPlane) -> str:
    """A degraded ClusterOperator that has been available for three days."""
    now = datetime.now(UTC)
    cluster.kubectl("create", "-f", "-", input=json.dumps(cluster_operator("dns")))
    status = {
        "versions": [
            {"name": "coredns", "version": "1.9"},
            {"name": "operator", "version": "4.7.0"},
        ],
        "conditions": [
            condition("Available", "True", "DNS answers", now - timedelta(days=3)),
            condition("Progressing", "False", "nothing to do", now),
            condition("Degraded", "True", "one server is slow", now),
        ],
    }
    patch = json.dumps({"status": status})
    cluster.kubectl(
        "patch", "co", "dns", "--subresource=status", "--type=merge", f"--patch={patch}"
    )
    return "dns"


def test_cluster_operators_read_like_those_of_oc(cluster: ControlPlane, dns: str) -> None:
    """By the short name, in the columns that `oc get co` has."""
    header, row = cluster.kubectl("get", "co").stdout.splitlines()
    assert header.split() == [
        "NAME",
        "VERSION",
        "AVAILABLE",
        "PROGRESSING",
        "DEGRADED",
        "SINCE",
        "MESSAGE",
    ]
    assert row.split(maxsplit=6) == [
        dns,
        "4.7.0",
        "True",
        "False",
        "True",
        "3d",
        "one server is slow",
    ]


def test_all_our_kinds_are_in_one_category(cluster: ControlPlane, dns: str) -> None:
    """`kubectl get quarterdeck` shows them, whatever their groups."""
    listed = cluster.kubectl("api-resources", "--categories=quarterdeck", "-o", "name").stdout
    assert sorted(listed.split()) == sorted(kind.crd_name for kind in KINDS)
    shown = cluster.kubectl("get", "quarterdeck", "-A", "-o", "name").stdout
    assert "clusteroperator.config.openshift.io/dns" in shown.split()


@pytest.mark.parametrize(
    ("resource", "header"),
    [
        pytest.param("cv", "NAME VERSION AVAILABLE PROGRESSING SINCE STATUS", id="ClusterVersion"),
        pytest.param("cvo", "NAME LOG-LEVEL GENERATION OBSERVED", id="ClusterVersionOperator"),
        pytest.param("featuregates", "NAME FEATURE-SET", id="FeatureGate"),
        pytest.param("infrastructures", "NAME PLATFORM CONTROL-PLANE", id="Infrastructure"),
        pytest.param("proxies", "NAME HTTP HTTPS", id="Proxy"),
        pytest.param("notes", "NAME READY AGE", id="Note"),
        pytest.param("hc", "NAME RELEASE LOG-LEVEL AVAILABLE MESSAGE AGE", id="HostedCluster"),
        pytest.param("hcp", "NAME VERSION LOG-LEVEL AVAILABLE AGE", id="HostedControlPlane"),
        pytest.param(
            "ingresscontrollers",
            "NAME ADMITTED AVAILABLE PROGRESSING DEGRADED LOGGING REPLICAS AGE",
            id="IngressController",
        ),
    ],
)
def test_columns(namespace: str, cluster: ControlPlane, resource: str, header: str) -> None:
    good = Path(__file__).parent / "good_objects"
    long_names = {
        "cv": "clusterversions",
        "cvo": "clusterversionoperators",
        "hc": "hostedclusters",
        "hcp": "hostedcontrolplanes",
    }
    file = long_names.get(resource, resource)
    cluster.kubectl("apply", "--namespace", namespace, "-f", str(good / f"{file}.yaml"))
    shown = cluster.kubectl("get", resource, "--namespace", namespace).stdout.splitlines()
    assert shown[0].split() == header.split()
    assert len(shown) >= 2
