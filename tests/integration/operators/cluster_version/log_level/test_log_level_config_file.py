"""The cluster version operator with a configuration file, as it runs for a hosted cluster."""

from pathlib import Path

from tests.integration.operators.cluster_version.log_level.test_log_level_live import USER

from quarterdeck.testing.audit import requests_by
from quarterdeck.testing.log_level import VERBOSITY, LogLevelObjects, wait_verbosity
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually, until

INVALID = "quarterdeck_config_file_invalid"
OFF = {
    "featureSet": "CustomNoUpgrade",
    "customNoUpgrade": {"disabled": ["ClusterVersionOperatorConfiguration"]},
}
MANIFEST = """
apiVersion: operator.openshift.io/v1alpha1
kind: ClusterVersionOperator
metadata: {name: cluster}
spec: {operatorLogLevel: %s}
"""


def test_the_file_counts_and_neither_the_object_nor_the_gate(
    objects: LogLevelObjects, run_cvo: StartOperator, tmp_path: Path
) -> None:
    """A test's operator starts at verbosity 4, which no level lowers."""
    objects.make_gates(OFF)
    objects.make_config("TraceAll")
    before = len(requests_by(objects.plane.audit_log, USER))
    file = tmp_path / "config.yaml"
    operator = run_cvo(f"--config={file}", "--cluster-profile=hypershift")
    line = operator.logged("configuration file not used")
    assert line["why"].startswith("No such file or directory: ")
    assert line["kept"] == "start-up"
    assert operator.metric(INVALID) == 1
    file.write_text(MANIFEST % "Trace")
    wait_verbosity(operator, 6)
    assert operator.metric(INVALID) == 0
    file.write_text(MANIFEST % "Normal")
    wait_verbosity(operator, 4)
    file.write_text(MANIFEST % "Trace")
    wait_verbosity(operator, 6)
    file.write_text("{")
    until(lambda: operator.metric(INVALID), lambda it: it == 1, "the metric of the broken file")
    assert operator.metric(VERBOSITY) == 6
    assert len(operator.lines("configuration file not used")) == 2
    # The file and the gates are two matters: the status of the gates is reported as ever.
    eventually(lambda: operator.lines("feature gates reported"), "a look at the gates")
    asked = requests_by(objects.plane.audit_log, USER)[before:]
    assert any(it.resource == "clusterversions" for it in asked)
    assert not [it for it in asked if it.resource.startswith("clusterversionoperators")]
    assert objects.config().get("status") is None
