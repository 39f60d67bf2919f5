"""metal3 changes hands in an update from release B to C, and its pod is the same one.

Nobody can pull metal3's images here, so its pod is on the simulated node beside the real ones; the
operators run on real nodes.
"""

import json
from pathlib import Path
from typing import Any

from tests.e2e.cluster import LIMIT, RealCluster
from tests.e2e.conftest import Images
from tests.e2e.installation import is_at
from tests.e2e.objects_left import all_objects

from quarterdeck.localcluster.real_nodes.addresses import REGISTRY
from quarterdeck.localcluster.simulated import TAINT
from quarterdeck.metal3.model.edges import RELEASES
from quarterdeck.testing.waiting import eventually

B, C = RELEASES["B"].version, RELEASES["C"].version
NAMESPACE = "openshift-machine-api"
LABEL = "quarterdeck.dev/node"
POLICY = "metal3-is-simulated"
PROVISIONING = {
    "apiVersion": "metal3.io/v1alpha1",
    "kind": "Provisioning",
    "metadata": {"name": "provisioning-configuration"},
    "spec": {
        "provisioningNetwork": "Managed",
        "provisioningInterface": "ens3",
        "provisioningIP": "172.30.20.3",
        "provisioningNetworkCIDR": "172.30.20.0/24",
        "provisioningDHCPRange": "172.30.20.11, 172.30.20.101",
        "provisioningOSDownloadURL": (
            f"https://images.example.test/os.qcow2.gz?sha256={'0123456789abcdef' * 4}"
        ),
    },
}


def simulated_metal3() -> list[dict[str, Any]]:
    """The admission policy that places metal3's pods on the simulated node."""
    toleration = ", ".join(f"'{key}': '{value}'" for key, value in TAINT.items())
    expression = (
        f"[JSONPatch{{op: 'add', path: '/spec/nodeSelector', value: {{'{LABEL}': 'simulated'}}}}, "
        f"JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: {{{toleration}}}}}]"
    )
    api = "admissionregistration.k8s.io/v1"
    rules = [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
        }
    ]
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": rules,
            "objectSelector": {"matchLabels": {"k8s-app": "metal3"}},
        },
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }
    return [
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": POLICY},
            "spec": spec,
        },
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": POLICY},
            "spec": {"policyName": POLICY},
        },
    ]


def is_simulated(cluster: RealCluster) -> bool:
    """Whether the policy would place a pod of metal3; the API server takes a moment to use it."""
    labels = ("--labels=k8s-app=metal3", "--dry-run=server", "--output=json")
    made = json.loads(cluster.kubectl("run", "metal3", "--image=metal3", *labels))
    return bool(made["spec"].get("nodeSelector"))


def release(cluster: RealCluster, images: Images, folder: Path, version: str, *more: str) -> str:
    """A release of the handover in the registry, by its digest."""
    archive = folder / f"{version}.tar"
    cluster.quarterdeck(
        *("release", "build", "--version", version, "--from", str(folder / version), *more),
        *(
            "--base",
            str(images.operators_archive),
            "--image",
            f"quarterdeck={REGISTRY}/quarterdeck",
        ),
        *("--keep-others", "-o", str(archive)),
    )
    return cluster.push(archive, f"handover:{version}")


def metal3_pods(cluster: RealCluster) -> dict[str, str]:
    """The uid and the node of metal3's pods that run."""
    return {
        pod["metadata"]["uid"]: pod["spec"].get("nodeName", "")
        for pod in cluster.pods(NAMESPACE, "k8s-app=metal3")
        if pod["status"].get("phase") == "Running"
    }


def test_metal3_changes_hands_and_its_pod_stays(
    cluster: RealCluster, images: Images, tmp_path: Path
) -> None:
    cluster.quarterdeck("handover", "releases", str(tmp_path))
    first = release(cluster, images, tmp_path, B)
    following = release(cluster, images, tmp_path, C, "--previous", B)
    before = all_objects(cluster)
    cluster.quarterdeck("install", "--image", first, "--registry-ca", str(cluster.registry_ca))
    cluster.apply(*simulated_metal3())
    eventually(lambda: is_simulated(cluster), "the policy is in effect", LIMIT)
    platform = '{"status":{"platform":"BareMetal","platformStatus":{"type":"BareMetal"}}}'
    cluster.kubectl(
        *("patch", "infrastructure", "cluster", "--subresource=status", "--type=merge"),
        f"--patch={platform}",
    )
    cluster.apply(PROVISIONING)
    eventually(lambda: len(metal3_pods(cluster)) == 1, "metal3 runs", limit=LIMIT)
    (pod,) = metal3_pods(cluster).items()
    where = (f"--namespace={NAMESPACE}",)
    assert pod[1] == "simulated"

    desired = f'{{"spec":{{"desiredUpdate":{{"version":"{C}","image":"{following}"}}}}}}'
    cluster.kubectl("patch", "clusterversion", "version", "--type=merge", f"--patch={desired}")
    eventually(lambda: is_at(cluster, C), f"release {C} is applied", limit=600)
    cluster.kubectl(
        *("wait", "clusteroperator/baremetal", f"--timeout={LIMIT:.0f}s"),
        "--for=jsonpath={.status.conditions[?(@.type=='Available')].reason}=DeployComplete",
    )
    assert metal3_pods(cluster) == dict([pod])
    assert "baremetal" in cluster.quarterdeck("handover", "status")
    # The new owner makes all of it again.
    cluster.kubectl("delete", *where, "deployment/metal3", "secret/metal3-mariadb-password")
    cluster.kubectl("wait", *where, "secret/metal3-mariadb-password", "--for=create")
    eventually(lambda: metal3_pods(cluster).keys() - {pod[0]}, "it runs again", LIMIT)

    cluster.quarterdeck("uninstall", "--yes")
    for kind in ("mutatingadmissionpolicy", "mutatingadmissionpolicybinding"):
        cluster.kubectl("delete", kind, POLICY)
    assert sorted(all_objects(cluster) ^ before) == []
