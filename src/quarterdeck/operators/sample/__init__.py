"""The sample operator of `docs/writing-an-operator.md`, which tests and benchmarks also use."""

from quarterdeck.delivery.declaration import Declaration, Deployed, Local

OPERATOR = Declaration(
    name="sample",
    part_of="quarterdeck",
    title="The sample operator",
    setup="quarterdeck.operators.sample.controller:setup",
    namespace="quarterdeck-sample",
    only_own_namespace=True,
    account="sample-operator",
    cluster_operator="sample",
    capability="openshift-samples",
    delivery=Deployed(),
    kinds=("quarterdeck.api.samples_v1alpha1:NOTES",),
    local=Local(text=", two replicas as processes of this machine", show_replicas=True),
)
