"""The operators used all their rights in this run, or their declarations say why not.

The audit log of the cluster tells, so this comes after all tests that use the operators.
"""

from pathlib import Path

import pytest
from tests.e2e.cluster import RealCluster

from quarterdeck.delivery.registry import installed
from quarterdeck.operators.ingress import router_account
from quarterdeck.testing.rbac import users
from quarterdeck.testing.unused_rights import unused_by_operator, unused_rights

OPERATORS = ("baremetal", "ingress", "machine-api", "sample", "staleness", "subscriptions")
"""Those of the releases in these tests; the cluster version operator is cluster-admin."""
UNUSED_BY_ROUTERS = {
    # A router writes an event about an object that it cannot use; there is none in these tests.
    "ClusterRole quarterdeck-router: create events.events.k8s.io",
    "ClusterRole quarterdeck-router: patch events.events.k8s.io",
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_used_every_right_that_it_has(cluster: RealCluster, name: str) -> None:
    declared = installed().operators[name]
    # The checker runs from its Deployment, under the account of that.
    running = declared.as_deployment() or declared
    found = unused_by_operator([Path(cluster.status.audit_log)], running)
    assert [str(one) for one in found] == []


def test_the_routers_used_every_right_that_they_have(cluster: RealCluster) -> None:
    (user,) = users(router_account.OBJECTS)
    found = unused_rights([Path(cluster.status.audit_log)], router_account.OBJECTS, user)
    # A cache lists where the API server does not stream its objects by the watch.
    left = {str(one) for one in found if one.verb != "list"}
    assert left == UNUSED_BY_ROUTERS
