"""ClusterOperators to write and read, and checkers to run, each under its own user."""

import json
from collections.abc import Iterator

import pytest
from tests.integration.operators.staleness.board import COLLECTION, CONDITIONS, USER, Board
from tests.integration.operators.staleness.webhook import denying

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.testing.operator_process import OwnOperators, StartOperator
from quarterdeck.testing.waiting import eventually

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PUBLISHED = "/api/v1/namespaces/kube-system/configmaps/quarterdeck-staleness"


@pytest.fixture
def board(control_plane: ControlPlane, crds: list[str], clean_cluster: None) -> Board:
    """The ClusterOperators of the shared control plane; they are gone after the test."""
    # What the checkers of earlier tests said of themselves counts for minutes.
    control_plane.requests().send("DELETE", PUBLISHED)
    return Board(control_plane)


@pytest.fixture
def checker(
    control_plane: ControlPlane, board: Board, own_operators: OwnOperators
) -> StartOperator:
    """Starts checkers."""
    return own_operators(control_plane, "staleness")


@pytest.fixture(scope="module")
def small_plane(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Only etcd and the API server, with the resource types; the tests of a file share it."""
    state = tmp_path_factory.mktemp("staleness")
    made = ControlPlane(state, control_plane_binaries, durable=False, audit=True)
    try:
        made.start("etcd", "kube-apiserver")
        install_own_definitions(made.requests())
        yield made
    finally:
        made.close()


@pytest.fixture
def plane(small_plane: ControlPlane) -> ControlPlane:
    """The small control plane, and nothing on it that checkers look at."""
    small_plane.start("etcd", "kube-apiserver")
    for path in (COLLECTION, EVENTS, PUBLISHED):
        answer = small_plane.requests().send("DELETE", path)
        assert answer.ok or answer.status == 404, answer.body.decode()
    return small_plane


@pytest.fixture
def atomic_conditions(board: Board) -> Iterator[None]:
    """The definition of ClusterOperator with an atomic list of conditions, as older ones are."""
    board.set_list_type("atomic")
    yield
    board.set_list_type("map")


@pytest.fixture
def policy(board: Board) -> Iterator[None]:
    """The checker may not write to `policy-CODE`, and is refused with that code."""
    rule = {
        "apiGroups": ["config.openshift.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["clusteroperators/status"],
    }
    user = f"request.userInfo.username != '{USER}'"
    validations = [
        {
            "expression": f"{user} || object.metadata.name != 'policy-{reason.lower()}'",
            "message": "hands off",
            "reason": reason,
        }
        for reason in ("Invalid", "Forbidden", "RequestEntityTooLarge")
    ]
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "hands-off"}}
    made = [
        kind
        | {
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": validations,
            },
        },
        kind
        | {
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": "hands-off", "validationActions": ["Deny"]},
        },
    ]
    kubectl, text = (
        board.plane.kubectl,
        json.dumps({"kind": "List", "apiVersion": "v1", "items": made}),
    )
    kubectl("apply", "--filename=-", input=text)
    try:
        wait_denied(board, "policy-invalid")
        yield
    finally:
        kubectl("delete", "--filename=-", input=text)


@pytest.fixture
def webhook(board: Board) -> Iterator[None]:
    """The checker may not write to `webhook-CODE`, and is refused with that code."""
    with denying(board.plane):
        wait_denied(board, "webhook-404")
        yield


def wait_denied(board: Board, name: str) -> None:
    """Wait until the checker may not write to the operator."""
    board.create(name)
    trial = [
        *("patch", "clusteroperator", name, "--subresource=status", "--type=merge"),
        *("--patch={}", "--dry-run=server", f"--as={USER}", "--as-group=system:masters"),
    ]
    kubectl = board.plane.kubectl
    eventually(lambda: "hands off" in kubectl(*trial, check=False).stderr, "it is in force")
    board.delete(name)


@pytest.fixture
def short_messages(board: Board) -> Iterator[None]:
    """The definition of ClusterOperator with room for the operators' own messages only."""
    limit = {"path": f"{CONDITIONS}/items/properties/message/maxLength", "value": 40}
    board.patch_definition({"op": "add", **limit})
    eventually(lambda: not board.takes("x" * 41), "longer ones are refused")
    yield
    board.patch_definition({"op": "remove", "path": limit["path"]})
    eventually(lambda: board.takes("x" * 41), "longer ones are taken again")
