"""A cluster with real nodes, driven by the commands that a user has."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import ClusterStatus, ProcessIdentity, running_status
from quarterdeck.testing.waiting import eventually

CHECKOUT = Path(__file__).parent.parent.parent
QUARTERDECK = (sys.executable, "-m", "quarterdeck")
LIMIT = 240.0
"""Seconds after which something that should happen counts as not happening."""


def tied(*words: str) -> list[str]:
    """A command that the kernel kills when this process ends, also when that is killed."""
    (program, *arguments) = words
    module = "quarterdeck.localcluster.die_with_parent"
    path = shutil.which(program) or program
    return [sys.executable, "-P", "-m", module, str(os.getpid()), path, *arguments]


class RealCluster:
    """A cluster with real nodes in a state directory."""

    def __init__(self, home: Path) -> None:
        """The cluster of the default name, whose state is below this directory."""
        self.layout = Layout(home / "quarterdeck" / "local")
        self.variables = os.environ | {
            "XDG_STATE_HOME": str(home),
            "KUBECONFIG": str(self.layout.kubeconfig),
        }
        self.registry_ca = self.layout.pki / "ca.crt"

    @property
    def status(self) -> ClusterStatus:
        """The status of the running cluster."""
        found = running_status(self.layout)
        assert found is not None, "the cluster does not run"
        return found

    @property
    def enter(self) -> tuple[str, str]:
        """The words before a command that is to run in the cluster's network."""
        return "nsenter", f"--net=/proc/{self.status.supervisor.pid}/ns/net"

    def run(
        self, *words: str, check: bool = True, inside: bool = False, text: str | None = None
    ) -> str:
        """The output of a command that reads this text; `inside`: in the cluster's network."""
        if inside:
            words = (*self.enter, *words)
        done = subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            cwd=CHECKOUT,
            env=self.variables,
            input=text,
        )
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    def up(self, *options: str) -> None:
        """Start the cluster; who kills this process ends the start, and not the cluster."""
        self.run(*tied(*QUARTERDECK, "local", "up", "--real-nodes", *options))

    def quarterdeck(self, *words: str, check: bool = True, inside: bool = False) -> str:
        """The output of one of our commands."""
        return self.run(*QUARTERDECK, *words, check=check, inside=inside)

    def push(self, archive: Path, name: str) -> str:
        """Push an archive to the registry; the reference that nodes pull, by its digest."""
        return self.quarterdeck("local", "push", str(archive), name).strip()

    def kubectl(self, *words: str, check: bool = True, text: str | None = None) -> str:
        """The output of kubectl, from the machine's own network."""
        return self.run(self.status.kubectl, *words, check=check, text=text)

    def get(self, *words: str) -> Any:
        """What `kubectl get` finds, as data."""
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects by kubectl."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(listed))

    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """The pods of a namespace that are not being deleted."""
        found = self.get("pods", "--namespace", namespace, f"--selector={selector}")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def roll_out(self, namespace: str, workload: str) -> None:
        """Wait until a workload's pods are available."""
        self.kubectl(
            "rollout", "status", "--namespace", namespace, workload, f"--timeout={LIMIT:.0f}s"
        )

    def python(self, pod: str, code: str, namespace: str = "default", check: bool = True) -> str:
        """The output of some Python in a pod of the operators' image."""
        where = ("exec", "--namespace", namespace, pod, "--")
        return self.kubectl(*where, "/usr/bin/python3.11", "-c", code, check=check)

    def process_of(self, component: str) -> ProcessIdentity:
        """The process of a component."""
        pid = next(one.pid for one in self.status.components if one.name == component)
        assert pid is not None
        found = ProcessIdentity.of(pid)
        assert found is not None
        return found

    def kill(self, component: str) -> None:
        """Kill a component with SIGKILL, and wait until its process has ended."""
        assert self.process_of(component).end(signal.SIGKILL, LIMIT)

    def kill_containers(self, pod: dict[str, Any]) -> None:
        """Kill the processes in a pod's containers with SIGKILL; the kubelet starts them again."""
        names = [
            one["containerID"].partition("://")[2] for one in pod["status"]["containerStatuses"]
        ]
        killed = 0
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                cgroups = (process / "cgroup").read_text()
                if any(name in cgroups for name in names):
                    os.kill(int(process.name), signal.SIGKILL)
                    killed += 1
        assert killed >= len(names), f"{names}: {killed} processes"

    def running(self, *components: str) -> None:
        """Wait until components run again."""

        def run() -> bool:
            states = {one.name: one.state for one in self.status.components}
            return all(states[name] == "running" for name in components)

        eventually(run, f"{', '.join(components)} run", limit=LIMIT)

    @contextmanager
    def forwarded(self, namespace: str, target: str, port: int) -> Iterator[int]:
        """A port of this machine that `kubectl port-forward` connects to a port of a pod."""
        words = (self.status.kubectl, "port-forward", "--namespace", namespace)
        process = subprocess.Popen(
            tied(*words, "--address=127.0.0.1", target, f":{port}"),
            env=self.variables,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            # Forwarding from 127.0.0.1:34567 -> 8080
            line = process.stdout.readline()
            yield int(line.split(" -> ")[0].rpartition(":")[2])
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def conditions(described: dict[str, Any]) -> dict[str, str]:
    """The status of each condition of an object."""
    return {one["type"]: one["status"] for one in described.get("status", {}).get("conditions", [])}


def deployment(name: str, image: str, command: Sequence[str], replicas: int = 1) -> dict[str, Any]:
    """A Deployment in `default`, under the rules of `restricted`, spread over the nodes."""
    labels = {"app": name}
    container = {
        "name": "main",
        "image": image,
        "command": list(command),
        "ports": [{"name": "http", "containerPort": 8080}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": labels},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container],
                    "topologySpreadConstraints": [spread],
                    "terminationGracePeriodSeconds": 1,
                },
            },
        },
    }
