"""What belongs to an installation."""

from typing import Any

import pytest

from quarterdeck.api.meta import CRDS, DEPLOYMENTS, NAMESPACES
from quarterdeck.delivery.registry import installed
from quarterdeck.install.removal import (
    Found,
    content,
    helm_release,
    is_of_others,
    is_ours,
    is_touched,
    operand_kinds,
    own,
    waits_for,
)

OPERATORS = list(installed().operators.values())
OWN = own(OPERATORS)
CREATED: dict[str, Any] = {"f:metadata": {"f:labels": {"f:kubernetes.io/metadata.name": {}}}}


def written(*managers: str, kind: str = "ConfigMap", name: str = "mine", **more: Any) -> Any:
    entries = [{"manager": manager} for manager in managers]
    return {"kind": kind, "metadata": {"name": name, "managedFields": entries, **more}}


def namespace(creator: str, *others: str, name: str = "mine") -> Any:
    made = written(*others, kind="Namespace", name=name)
    made["metadata"]["managedFields"].append({"manager": creator, "fieldsV1": CREATED})
    return made


def marked(space: Any, by: str) -> Any:
    """A namespace of the installation's names, with our annotation by a field manager."""
    meta = space["metadata"]
    meta["name"], meta["annotations"] = "quarterdeck-sample", {"quarterdeck.dev/owner": "x"}
    fields: Any = {"f:metadata": {"f:annotations": {"f:quarterdeck.dev/owner": {}}}}
    meta["managedFields"].append({"manager": by, "fieldsV1": fields})
    return space


@pytest.mark.parametrize(
    ("obj", "ours"),
    [
        pytest.param(written("quarterdeck-install"), True, id="only we wrote it"),
        pytest.param(written("quarterdeck-ingress", "kube-controller-manager"), True, id="system"),
        pytest.param(written("quarterdeck-ingress", "kubectl-label"), True, id="a label by hand"),
        pytest.param(
            written("quarterdeck-install", "quarterdeck-cli", "kubectl-patch"),
            True,
            id="updated by our command, and by hand",
        ),
        pytest.param(
            written("cluster-version-operator", "quarterdeck-cli"), False, id="OpenShift's, updated"
        ),
        pytest.param(written("quarterdeck-ingress", "kubectl-create"), False, id="made by hand"),
        *(
            pytest.param(
                written("quarterdeck-ingress", f"kubectl-{verb}"), True, id=f"{verb} by hand"
            )
            for verb in ("patch", "rollout", "set", "scale", "replace")
        ),
        pytest.param(written("helm"), False, id="of somebody else"),
        pytest.param(written("quarterdeck-local"), False, id="of the local cluster"),
        pytest.param(written("quarterdeck-ingress-of-mine"), False, id="a name like ours"),
        pytest.param(written(), False, id="of nobody"),
        pytest.param(
            written(
                "helm",
                kind="ClusterRole",
                name="quarterdeck-staleness",
                annotations={"quarterdeck.dev/owner": "quarterdeck"},
            ),
            True,
            id="installed by Helm",
        ),
        pytest.param(
            written("kubectl-create", annotations={"quarterdeck.dev/owner": "quarterdeck"}),
            False,
            id="a copy with its annotations",
        ),
        pytest.param(
            written("kubectl", "quarterdeck-local", annotations={"quarterdeck.dev/owner": "x"}),
            False,
            id="of the local cluster, applied again",
        ),
        pytest.param(namespace("quarterdeck-cluster-version"), True, id="our namespace"),
        pytest.param(
            namespace("kubectl-create", "quarterdeck-cluster-version"),
            False,
            id="a namespace that was there before",
        ),
        pytest.param(
            namespace("quarterdeck-install", name="kube-system"), False, id="never kube-system"
        ),
        pytest.param(written("quarterdeck-install", kind="Namespace"), True, id="applied"),
        pytest.param(
            written("argocd", "quarterdeck-install", kind="Namespace"), False, id="applied by two"
        ),
        pytest.param(
            marked(namespace("kubectl-create"), by="quarterdeck-install"),
            False,
            id="a namespace of others with our mark",
        ),
        pytest.param(
            marked(namespace("kubectl-client-side-apply"), by="kubectl-client-side-apply"),
            True,
            id="a namespace of the plain YAML",
        ),
        pytest.param(
            written(
                "helm",
                kind="Namespace",
                name="kube-system",
                annotations={"quarterdeck.dev/owner": "quarterdeck"},
            ),
            False,
            id="never kube-system, whatever it says",
        ),
        pytest.param(
            written(
                "quarterdeck", kind="Lease", name="sample-operator", namespace="quarterdeck-sample"
            ),
            True,
            id="the Lease of an operator",
        ),
        pytest.param(
            written("quarterdeck", kind="Lease", name="mine", namespace="quarterdeck-sample"),
            False,
            id="a Lease of another program",
        ),
    ],
)
def test_an_object_is_ours_if_nobody_else_made_it(obj: Any, ours: bool) -> None:
    assert is_ours(obj, OWN) is ours


def test_a_status_that_we_wrote_makes_nothing_ours() -> None:
    """The staleness checker writes the status of operators of others."""
    entry = {"manager": "quarterdeck-staleness", "subresource": "status"}
    obj = {"kind": "ClusterOperator", "metadata": {"name": "dns", "managedFields": [entry]}}
    assert not is_ours(obj, OWN)
    assert not is_touched(obj, OWN)


def test_kinds_are_cleaned_up_in_the_reverse_order_of_their_operators() -> None:
    kinds = [name for some in operand_kinds(OPERATORS) for name in some]
    assert "clusterversions.config.openshift.io" not in kinds
    order = [
        kinds.index(f"{name}.operators.coreos.com") for name in ("subscriptions", "operatorgroups")
    ]
    assert order == sorted(order)
    assert kinds.index("provisionings.metal3.io") > kinds.index("notes.samples.quarterdeck.dev")


def in_ours(*managers: str, kind: str = "ConfigMap", name: str = "theirs", **more: Any) -> Any:
    given = {"namespace": "openshift-cluster-version", "uid": "1", **more}
    return written(*managers, kind=kind, name=name, **given)


EVERYWHERE = in_ours("x", name="ca.crt") | {"data": {"a": "b"}}


@pytest.mark.parametrize(
    ("obj", "keeps"),
    [
        pytest.param(in_ours("kubectl-create"), True, id="somebody else's"),
        pytest.param(in_ours(), True, id="nobody says whose"),
        pytest.param(in_ours("kubectl-create", kind="Pod"), True, id="a pod without an owner"),
        pytest.param(in_ours("quarterdeck-install"), False, id="ours"),
        pytest.param(in_ours("quarterdeck-ingress", "argocd"), False, id="changed by others"),
        pytest.param(in_ours("quarterdeck"), False, id="of our program"),
        pytest.param(in_ours("quarterdeck-cli", "kubectl-create"), False, id="of our commands"),
        pytest.param(in_ours("quarterdecks"), True, id="a name like ours"),
        pytest.param(in_ours("kube-controller-manager"), False, id="of Kubernetes"),
        pytest.param(in_ours("x", ownerReferences=[{"uid": "2"}]), False, id="of an owner"),
        pytest.param(in_ours("x", deletionTimestamp="now"), False, id="being deleted"),
        pytest.param(in_ours("x", uid=""), False, id="computed by a server"),
        pytest.param(EVERYWHERE, False, id="in every namespace"),
        pytest.param(EVERYWHERE | {"data": {"a": "c"}}, True, id="the name alone is elsewhere"),
        pytest.param(in_ours("x", kind="Secret", name="pull-secret"), False, id="brought for us"),
    ],
)
def test_objects_of_others_keep_a_namespace(obj: Any, keeps: bool) -> None:
    everywhere = {("ConfigMap", "ca.crt"): content(EVERYWHERE)}
    assert is_of_others(obj, OWN, everywhere) is keeps


def test_what_keeps_a_namespace_or_a_definition_is_told() -> None:
    space = written(kind="Namespace", name="held")
    space["status"] = {
        "conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1"},
            {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "fine"},
        ]
    }
    assert waits_for(Found(resource=NAMESPACES, object=space)) == "Namespace held: pods. has 1"
    kind = written(kind=CRDS.kind, name="notes.example.test", finalizers=["x/clean-up"])
    told = waits_for(Found(resource=CRDS, object=kind))
    assert "kubectl get notes.example.test --all-namespaces" in told
    stopping = in_ours(kind="Deployment", name="d", finalizers=["foregroundDeletion"])
    told = waits_for(Found(resource=DEPLOYMENTS, object=stopping))
    assert "waits until its pods have ended" in told
    assert "kubectl get pods --namespace=openshift-cluster-version" in told


def test_the_release_of_helm_is_named() -> None:
    annotations = {"meta.helm.sh/release-name": "q", "meta.helm.sh/release-namespace": "n"}
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    obj = written("helm", labels=labels, annotations=annotations)
    assert helm_release(obj) == "q in the namespace n"
    assert helm_release(written("helm", labels=labels)) == ""
    for bad in ("q; reboot", "q\nq", "$(reboot)", "-q", "Q", ""):
        evil = annotations | {"meta.helm.sh/release-name": bad}
        assert helm_release(written("helm", labels=labels, annotations=evil)) == ""
