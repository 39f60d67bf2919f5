"""The ingress operator: routers for the cluster's Ingress objects, and their access logs."""

from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    Hint,
    Local,
    LocalObjects,
    PayloadPart,
    PodMetrics,
)

OPERATOR = Declaration(
    name="ingress",
    part_of="quarterdeck",
    title="The ingress operator",
    setup="quarterdeck.operators.ingress.controller:setup",
    settings="quarterdeck.operators.ingress.settings:Settings",
    namespace="openshift-ingress-operator",
    other_namespaces=("openshift-ingress",),
    account="ingress-operator",
    component="ingress-operator",
    cluster_operator="ingress",
    capability="Ingress",
    delivery=Deployed(
        priority_class="system-cluster-critical",
        # It asks the HAProxy of the routers whether it accepts a log format.
        image="quarterdeck-router",
        other_images=("quarterdeck-router",),
        env=(("ROUTER_IMAGE", "quarterdeck-router"),),
    ),
    kinds=("quarterdeck.api.operator_v1:INGRESS_CONTROLLERS",),
    parts=(
        PayloadPart(
            name="router",
            # Before the operator: a new router may need a right that the old one did not.
            run_level=49,
            objects="quarterdeck.operators.ingress.router_account:OBJECTS",
            kept=True,
        ),
    ),
    alerts="quarterdeck.operators.ingress.alerts:ALERTS",
    operand_metrics=(
        PodMetrics(
            name="router",
            namespace="openshift-ingress",
            label="ingresscontroller.operator.openshift.io/deployment-ingresscontroller",
            port="metrics",
        ),
    ),
    local=Local(
        # A backend on this machine is reached as ExternalName `localhost`: the API server refuses
        # loopback addresses as endpoints.
        args=("--external-names", "--loopback-backends"),
        objects=LocalObjects(
            objects="quarterdeck.operators.ingress.local_default:local_objects",
            ports=("http", "https", "stats"),
            ready="Available",
        ),
        hints=(
            Hint(
                "Send its IngressController `default` a request:",
                (
                    *("--silent", "--header", "Host: shop.example.com"),
                    "http://127.0.0.1:{http}/hello",
                ),
                program="curl",
            ),
            Hint(
                "No Ingress has this host, so the answer is 503. Its access line:",
                (
                    "logs",
                    "--namespace=openshift-ingress",
                    "deployment/router-default",
                    "--container=logs",
                    "--tail=1",
                ),
                program="kubectl",
            ),
        ),
    ),
)
