"""Runs the cluster version operators of hosted clusters, and gives them their configuration."""

from quarterdeck.delivery.declaration import Declaration, Deployed, Local, PolicyRule, SeldomUsed

OPERATOR = Declaration(
    name="hosted",
    part_of="quarterdeck",
    title="The hosted operator",
    setup="quarterdeck.operators.hosted.controller:setup",
    settings="quarterdeck.operators.hosted.settings:Settings",
    namespace="hypershift",
    account="hosted-operator",
    kinds=(
        "quarterdeck.api.hypershift_v1beta1:HOSTED_CLUSTERS",
        "quarterdeck.api.hypershift_v1beta1:HOSTED_CONTROL_PLANES",
    ),
    rights=(
        # What it may do in the namespaces that it makes is in this role, which it binds there.
        PolicyRule(
            group="rbac.authorization.k8s.io",
            resources=("clusterroles",),
            names=("quarterdeck-hosted-control-plane",),
            verbs=("bind",),
        ),
    ),
    seldom_used=(
        SeldomUsed(
            group="hypershift.openshift.io",
            resource="hostedclusters",
            verbs=("get",),
            why="before it removes a namespace that was left over, it looks for its HostedCluster",
        ),
    ),
    # Few clusters are management clusters, and where upstream's HyperShift runs, the resource types
    # are its own: so an administrator installs it where it is wanted, and no payload does.
    delivery=Deployed(priority_class="system-cluster-critical", in_payload=None),
    # A local cluster has releases only if it runs one itself.
    local=Local(args=("--hosted-releases=",)),
)
