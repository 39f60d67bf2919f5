"""Subscriptions: operators from catalogs, with a configuration of their pods that holds."""

from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    Hint,
    Local,
    LocalObjects,
    PolicyRule,
)

_KINDS = "quarterdeck.api.operators_v1alpha1"
_LIST = ("subscription", "list")

OPERATOR = Declaration(
    name="subscriptions",
    part_of="quarterdeck",
    title="The operator of Subscriptions",
    setup="quarterdeck.operators.subscriptions.controller:setup",
    settings="quarterdeck.operators.subscriptions.settings:Settings",
    namespace="openshift-operator-lifecycle-manager",
    account="subscription-operator",
    cluster_operator="operator-lifecycle-manager",
    delivery=Deployed(replicas=1),
    kinds=(
        f"{_KINDS}:SUBSCRIPTIONS",
        f"{_KINDS}:CLUSTER_SERVICE_VERSIONS",
        f"{_KINDS}:INSTALL_PLANS",
        f"{_KINDS}:CATALOG_SOURCES",
        "quarterdeck.api.operators_v1:OPERATOR_GROUPS",
    ),
    local=Local(
        objects=LocalObjects(
            objects="quarterdeck.operators.subscriptions.local_default:local_objects"
        ),
        hints=(
            Hint("A Subscription with one config entry, and what it has installed:", _LIST),
            Hint(
                "The log of the operator that it has installed, at the level of that entry:",
                ("logs", "--namespace=sample-subscription", "deployment/sample-operator"),
                program="kubectl",
            ),
        ),
    ),
    rights=(
        # It hands out the rights that operators ask for, which are more than its own.
        PolicyRule(
            group="rbac.authorization.k8s.io",
            resources=("roles", "clusterroles"),
            verbs=("escalate", "bind"),
        ),
        # An OperatorGroup can name the account as which operators are installed.
        PolicyRule(group="", resources=("serviceaccounts",), verbs=("impersonate",)),
    ),
)
