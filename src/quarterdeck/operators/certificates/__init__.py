"""Approves the renewal of the client certificates of static pods, and nothing else."""

from quarterdeck.delivery.declaration import Declaration, Deployed, PolicyRule, SeldomUsed

OPERATOR = Declaration(
    name="certificates",
    part_of="quarterdeck",
    title="The certificate approver",
    setup="quarterdeck.operators.certificates.controller:setup",
    settings="quarterdeck.operators.certificates.settings:Settings",
    namespace="quarterdeck-certificates",
    account="certificate-approver",
    rights=(
        # Whoever has it can let anybody sign in as anybody: no other account of ours has it, and
        # this one cannot make requests.
        PolicyRule(
            group="certificates.k8s.io",
            resources=("signers",),
            names=("kubernetes.io/kube-apiserver-client",),
            verbs=("approve",),
        ),
    ),
    seldom_used=(
        SeldomUsed(
            group="certificates.k8s.io",
            resource="certificatesigningrequests/approval",
            verbs=("patch",),
            why="a static pod renews its certificate after half of its lifetime",
        ),
        SeldomUsed(
            group="certificates.k8s.io",
            resource="signers",
            verbs=("approve",),
            why="the API server asks for it when it approves; no request shows it",
        ),
    ),
    # Only clusters with static pods of ours need it: an administrator installs it with them.
    delivery=Deployed(priority_class="system-cluster-critical", in_payload=None),
)
