"""The cluster version operator: it applies a release payload and reports on ClusterVersion."""

from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    EmptyDir,
    Hint,
    InPayload,
    Local,
    LocalOption,
    OptionalFile,
    OptionalFiles,
    PayloadPart,
)
from quarterdeck.delivery.placement import CONTROL_PLANE, CONTROL_PLANE_ROLES

TRUST = "/etc/quarterdeck/trust"
"""Where its pod finds the pull secret, certificates and the key for releases, if there are some."""

OPERATOR = Declaration(
    name="cluster-version",
    part_of="quarterdeck",
    title="The cluster version operator",
    setup="quarterdeck.operators.cluster_version.controller:setup",
    settings="quarterdeck.operators.cluster_version.settings:Settings",
    namespace="openshift-cluster-version",
    account="cluster-version-operator",
    component="cluster-version-operator",
    run_level=0,
    applies_payload=True,
    # It applies whatever a release contains, roles included, so it has to have every right that
    # it hands out.
    cluster_admin=True,
    delivery=Deployed(
        priority_class="system-cluster-critical",
        preferred_nodes=CONTROL_PLANE,
        tolerated_taints=CONTROL_PLANE_ROLES,
        # 110 MB for 900 manifests; a release may be larger, and two are loaded in an update.
        memory_limit="1Gi",
        in_payload=InPayload(
            image="{{.ReleaseImage}}",
            args=(
                "--fetched-releases=/fetched",
                f"--trust={TRUST}",
                "--default-platform=None",
                "--release-image={{.ReleaseImage}}",
                "--cluster-profile={{.ClusterProfile}}",
            ),
            # Five releases of at most 64 MB, and a layer that is being fetched.
            empty_dirs=(EmptyDir("fetched", "/fetched", "512Mi"),),
            optional_files=(
                OptionalFiles(
                    "trust",
                    TRUST,
                    (
                        OptionalFile(
                            "secret", "pull-secret", ".dockerconfigjson", "pull-secret.json"
                        ),
                        OptionalFile("configMap", "trusted-ca", "ca-bundle.crt", "ca-bundle.crt"),
                        OptionalFile(
                            "configMap", "release-verification", "release.pub", "release.pub"
                        ),
                        OptionalFile("configMap", "registry-mirrors", "mirrors", "mirrors"),
                    ),
                ),
            ),
        ),
    ),
    kinds=(
        "quarterdeck.api.config_v1:CLUSTER_OPERATORS",
        "quarterdeck.api.config_v1:CLUSTER_VERSIONS",
        "quarterdeck.api.operator_v1alpha1:CLUSTER_VERSION_OPERATORS",
    ),
    parts=(
        PayloadPart(
            name="config",
            run_level=10,
            kinds=(
                "quarterdeck.api.config_v1:FEATURE_GATES",
                "quarterdeck.api.config_v1:INFRASTRUCTURES",
                "quarterdeck.api.config_v1:PROXIES",
            ),
            objects="quarterdeck.operators.cluster_version.config:OBJECTS",
        ),
    ),
    alerts="quarterdeck.operators.cluster_version.alerts:ALERTS",
    local=Local(
        hints=(
            Hint(
                "How to see more in it (Normal, Debug, Trace, TraceAll):",
                ("log-level", "set", "Debug"),
            ),
        ),
        options=(
            LocalOption(
                flag="--cvo-log-level",
                help="Run the cluster version operator; if it has no configuration yet, create one "
                "with this log level.",
                choices=("Normal", "Debug", "Trace", "TraceAll"),
                kind="ClusterVersionOperator",
                field=("spec", "operatorLogLevel"),
            ),
        ),
    ),
)
