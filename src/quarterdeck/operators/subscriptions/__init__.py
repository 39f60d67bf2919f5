"""Subscriptions: operators from catalogs, with a configuration of their pods that holds."""

from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    Hint,
    Local,
    LocalObjects,
    PolicyRule,
    SeldomUsed,
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
    capability="OperatorLifecycleManager",
    delivery=Deployed(priority_class="system-cluster-critical"),
    kinds=(
        f"{_KINDS}:SUBSCRIPTIONS",
        f"{_KINDS}:CLUSTER_SERVICE_VERSIONS",
        f"{_KINDS}:INSTALL_PLANS",
        f"{_KINDS}:CATALOG_SOURCES",
        "quarterdeck.api.operators_v1:OPERATOR_GROUPS",
    ),
    local=Local(
        replicas=1,
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
    seldom_used=(
        SeldomUsed(
            group="",
            resource="serviceaccounts",
            verbs=("delete",),
            why="a ClusterServiceVersion that is changed in place may need an account no more",
        ),
        SeldomUsed(
            group="apps",
            resource="deployments",
            verbs=("delete",),
            why="a version may have no Deployment of a name that the one before had, or another "
            "selector, which cannot be changed",
        ),
        SeldomUsed(
            group="operators.coreos.com",
            resource="installplans",
            verbs=("patch",),
            why="a plan that waits is approved when its Subscription becomes Automatic",
        ),
        SeldomUsed(
            group="operators.coreos.com",
            resource="installplans",
            verbs=("delete",),
            why="a plan is deleted when its version is no longer the next one, or its result gone",
        ),
        SeldomUsed(
            group="",
            resource="serviceaccounts",
            verbs=("impersonate",),
            why="only an OperatorGroup that names an account has operators installed as it",
        ),
    ),
)
