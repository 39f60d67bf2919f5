"""The commands of docs/cluster-operators.md, in their order, and what they show."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.documents import Shell, commands
from tests.objects import cluster_operator
from tests.places import DOCS

from quarterdeck.api.config_v1 import OperandVersion
from quarterdeck.api.meta import Key
from quarterdeck.api.samples_v1alpha1 import NOTES
from quarterdeck.localcluster import ControlPlane
from quarterdeck.status import all_of, condition, standard_conditions
from quarterdeck.status.report import Report, desired_status
from quarterdeck.status.reporter import completed
from quarterdeck.status.staleness_marks import verdict_message

TEXT = (DOCS / "cluster-operators.md").read_text()
EXAMPLES = commands(TEXT)
COLLECTION = "/apis/config.openshift.io/v1/clusteroperators"
AGE = re.compile(r"\b\d+[dhms](\d+[hms])?\b")


def status(ago: timedelta, *but: Any, version: str = "4.7.0") -> dict[str, Any]:
    versions = (OperandVersion(name="operator", version=version),)
    report = Report(conditions=standard_conditions(*but), versions=versions)
    return desired_status({}, report, datetime.now(UTC) - ago)


def sample_status() -> dict[str, Any]:
    lease = Key("quarterdeck-sample", "sample-operator")
    report = Report(
        conditions=standard_conditions(), related_objects=(all_of(NOTES),), at_release_version=True
    )
    now = datetime.now(UTC) - timedelta(seconds=31)
    said = desired_status({}, completed(report, "4.7.0", lease.namespace, lease), now)
    for one in said["conditions"]:
        one["message"] = verdict_message("", one["status"], 1200)
        one["status"] = "Unknown"
    return said


@pytest.fixture
def documented(control_plane: ControlPlane, crds: list[str], clean_cluster: None) -> None:
    """The ClusterOperators of the document."""
    hour = timedelta(hours=1)
    statuses = {
        "baremetal": status(
            hour, condition("Disabled", True, "Unsupported", "Nothing to do on this Platform")
        ),
        "ingress": status(
            hour,
            condition("Available", False, "NoPods", "no router pod is ready"),
            condition("Degraded", True, "NoPods", "no router pod is ready"),
        ),
        "machine-api": status(
            hour,
            condition("Progressing", True, "RollingOut", "rolling out 4.7.0: 1 of 3 nodes"),
            version="4.6.1",
        ),
        "sample": sample_status(),
    }
    requests = control_plane.requests()
    for name, said in statuses.items():
        requests.apply(COLLECTION, cluster_operator(name))
        body = json.dumps({"status": said}).encode()
        path = f"{COLLECTION}/{name}/status"
        answer = requests.send("PATCH", path, body, "application/merge-patch+json")
        assert answer.ok, answer.body


def plain(text: str) -> list[list[str]]:
    """The words of each line, but for how long things last."""
    return [AGE.sub("…", line).split() for line in text.strip().splitlines()]


def test_the_commands_show_what_the_document_shows(
    documented: None, kubeconfig: Path, tmp_path: Path
) -> None:
    run = Shell(tmp_path, {"KUBECONFIG": str(kubeconfig)})
    codes = []
    for command, shown in EXAMPLES:
        done = run(command)
        lines = plain(done.stdout)
        expected = plain(shown)
        if "yaml" in command:
            lines = [line for line in lines if line in expected]
        assert lines == expected, done.stderr
        codes.append(done.returncode)
    assert codes == [1, 1, 0]
