"""`python -m bench.baremetal [--seconds 80]`: what the baremetal operator costs while disabled.

A cluster of its own on the platform `None`. The operator runs as it is delivered, with leader
election, under its own account. Its requests are counted in the API server's audit log; a watch is
logged when it ends, after 60 to 90 seconds. At the same time, in another cluster, the same on bare
metal with no Provisioning: both wait nearly all the time.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.goals import at_most
from bench.node import cpu_seconds
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.localcluster.infrastructure import ensure_infrastructure
from quarterdeck.testing.audit import AuditedRequest, requests_by
from quarterdeck.testing.operator_process import OperatorProcess, own_account
from quarterdeck.testing.waiting import eventually

USER = "system:serviceaccount:openshift-machine-api:cluster-baremetal-operator"
REST = 5.0
"""Seconds between the first report and the measurement."""
MOST_REQUESTS = 4.0
"""The goal: requests in a minute, but for the Lease. Two watches are opened again in 60 to 90 s."""
COLUMNS = [
    Column(figure="requests", title="requests/min", format=".1f"),
    Column(figure="lease", title="Lease requests/min", format=".1f"),
    Column(figure="writes", title="writes"),
    Column(figure="cpu", title="CPU per hour", format=".1f", unit=" s"),
    Column(figure="memory_mb", title="memory", format=".1f", unit=" MB"),
]


def main() -> None:
    """Measure, show and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=80)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        rows = _rows(Path(directory), seconds)
    disabled = rows[0].figures["requests"]
    found = Measurement(
        name="baremetal",
        title=f"the baremetal operator with nothing to do, over {seconds:g} s",
        columns=COLUMNS,
        rows=rows,
        verdicts=[at_most("requests in a minute while disabled", MOST_REQUESTS, disabled, "")],
    )
    report("baremetal", [found])


SUBJECTS = {"disabled": "None", "enabled": "BareMetal"}
"""The platform of each row."""


def _rows(directory: Path, seconds: float) -> list[Row]:
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))

    def measured(subject: str) -> Row:
        state = directory / subject
        with ControlPlane(state, binaries, durable=False, audit=True) as plane:
            install_own_definitions(plane.requests())
            ensure_infrastructure(plane, SUBJECTS[subject])
            return _row(plane, directory / f"{subject}.log", subject, seconds)

    with ThreadPoolExecutor(len(SUBJECTS)) as both:
        return list(both.map(measured, SUBJECTS))


def _row(plane: ControlPlane, log: Path, subject: str, seconds: float) -> Row:
    account = own_account(plane, "baremetal")
    operator = OperatorProcess(
        ["--operator=baremetal", f"--kubeconfig={account}", "--leader-elect"], log, verbosity=2
    )
    try:
        eventually(lambda: operator.get("/readyz")[0] == 200, "the operator is ready")
        time.sleep(REST)
        before, cpu = len(requests_by(plane.audit_log, USER)), cpu_seconds(operator.pid)
        time.sleep(seconds)
        made = requests_by(plane.audit_log, USER)[before:]
        used = cpu_seconds(operator.pid) - cpu
        memory = _memory(operator.pid)
    finally:
        operator.kill()
    leases = [one for one in made if one.resource == "leases"]
    return Row(
        subject=subject,
        figures={
            "requests": (len(made) - len(leases)) * 60 / seconds,
            "lease": len(leases) * 60 / seconds,
            "writes": len([one for one in made if _is_write(one)]),
            "cpu": used * 3600 / seconds,
            "memory_mb": memory / 1e6,
        },
    )


def _is_write(one: AuditedRequest) -> bool:
    return one.verb not in ("get", "list", "watch") and one.resource != "leases"


def _memory(pid: int) -> int:
    (line,) = (
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in line
    )
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
