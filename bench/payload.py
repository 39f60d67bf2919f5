"""`python -m bench.payload`: a payload of 900 manifests, offline: time and peak memory.

The payload is made for the run, in the proportions of a real one. Each subject runs in processes of
its own, in turns, and the median counts. Time is CPU time where it says so, because other work on
the machine hardly changes it. The peer is PyYAML's C loader, which only parses the same files; the
commands are whole processes, from Python's start to the last line.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from bench.goals import at_most
from bench.report import report
from bench.results import Column, Measurement, Row

MANIFESTS = 900
COMPONENTS = 45
WALL, CPU, MEGABYTES = "seconds", "cpu_seconds", "megabytes"
COMMANDS = {
    "payload lint": ["lint"],
    "payload why": ["why", "Deployment/part-007"],
    "payload graph": ["graph"],
}


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.payload", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--subject", choices=SUBJECTS, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.subject:
        print(json.dumps(SUBJECTS[arguments.subject](arguments.directory)))
        return
    with tempfile.TemporaryDirectory(prefix="bench-payload-") as directory:
        size = generate(Path(directory))
        found = [
            _subjects(Path(directory), arguments.repeats, size),
            _commands(Path(directory), arguments.repeats),
        ]
    report("payload", found)


def quarterdeck(directory: Path) -> dict[str, float]:
    """What the live operator does with a payload: load it, filter it, put it in order."""
    from quarterdeck.payload.filters import included
    from quarterdeck.payload.graph import Mode, build_graph
    from quarterdeck.payload.lint import lint
    from quarterdeck.payload.load import read_payload
    from quarterdeck.payload.observed import ObservedCluster

    figures: dict[str, float] = {}
    with _timed(figures, "load"):
        reading = read_payload([directory])
    assert not reading.problems
    assert len(reading.payload.manifests) == MANIFESTS
    with _timed(figures, "filter"):
        counted = included(reading.payload.manifests, ObservedCluster())
    with _timed(figures, "graph"):
        for mode in Mode:
            assert len(build_graph(counted, mode).manifests) == len(counted)
    figures[MEGABYTES] = _peak(resource.RUSAGE_SELF)
    with _timed(figures, "lint"):
        assert not lint(reading)
    return figures


def pyyaml(directory: Path) -> dict[str, float]:
    """Only parsing, by the C loader that most Python programs use."""
    figures: dict[str, float] = {}
    with _timed(figures, "load"):
        documents = [
            document
            for path in sorted(directory.glob("*/*.yaml"))
            for document in yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader)
        ]
    assert len(documents) == MANIFESTS
    figures[MEGABYTES] = _peak(resource.RUSAGE_SELF)
    return figures


SUBJECTS: dict[str, Callable[[Path], dict[str, float]]] = {
    "quarterdeck": quarterdeck,
    "PyYAML, C loader": pyyaml,
}


class _timed:  # noqa: N801  reads as a word of the language
    def __init__(self, figures: dict[str, float], name: str) -> None:
        self._figures, self._name = figures, name

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *_: object) -> None:
        self._figures[self._name] = time.process_time() - self._start


def _peak(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def _subjects(directory: Path, repeats: int, size: int) -> Measurement:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in SUBJECTS}
    for _ in range(repeats):
        for name in SUBJECTS:
            command = [sys.executable, "-m", "bench.payload", "--subject", name]
            done = subprocess.run(
                [*command, "--directory", str(directory)], capture_output=True, check=True
            )
            runs[name].append(json.loads(done.stdout))
    rows = [
        Row(
            subject=name,
            figures={
                figure: statistics.median(run[figure] for run in found) for figure in found[0]
            },
        )
        for name, found in runs.items()
    ]
    ours, theirs = (row.figures["load"] for row in rows)
    return Measurement(
        name="payload",
        title=f"{MANIFESTS} manifests, {size / 1e6:.1f} MB: CPU time, median of {repeats}",
        columns=[
            Column(figure="load", title="load", format=",.0f", scale=1000, unit=" ms"),
            Column(figure="filter", title="filter", format=",.1f", scale=1000, unit=" ms"),
            Column(figure="graph", title="graph, 3 modes", format=",.1f", scale=1000, unit=" ms"),
            Column(figure="lint", title="lint", format=",.0f", scale=1000, unit=" ms"),
            Column(figure=MEGABYTES, title="peak", unit=" MB"),
        ],
        rows=rows,
        verdicts=[at_most("load, to only parsing with PyYAML's C loader", 1, ours / theirs)],
    )


def _commands(directory: Path, repeats: int) -> Measurement:
    program = str(Path(sys.executable).with_name("quarterdeck"))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, (command, *rest) in COMMANDS.items():
            start, cpu = time.perf_counter(), _children_cpu()
            subprocess.run(
                [program, "payload", command, str(directory), *rest],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            times[name].append((time.perf_counter() - start, _children_cpu() - cpu))
    rows = [
        Row(
            subject=name,
            figures={
                WALL: statistics.median(wall for wall, _ in found),
                CPU: statistics.median(cpu for _, cpu in found),
            },
        )
        for name, found in times.items()
    ]
    slowest = max(row.figures[CPU] for row in rows)
    return Measurement(
        name="payload-commands",
        title="the same by the command line, Python's start included",
        columns=[
            Column(figure=CPU, title="CPU time", scale=1000, unit=" ms"),
            Column(figure=WALL, title="whole process", scale=1000, unit=" ms"),
        ],
        rows=rows,
        verdicts=[at_most("CPU time of the slowest command", 1, slowest, "s")],
    )


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def generate(directory: Path) -> int:
    """Write the payload; how many bytes it has.

    Of 20 manifests of a component, 2 are CRDs of some 25 KB, which is most of the text.
    """
    size = 0
    per_component = MANIFESTS // COMPONENTS
    for number in range(COMPONENTS):
        part = f"part-{number:03}"
        level = 10 + number // 3
        (directory / part).mkdir()
        references = {
            "kind": "ImageStream",
            "apiVersion": "image.openshift.io/v1",
            "spec": {"tags": [{"name": part, "from": {"name": f"example.test/{part}"}}]},
        }
        (directory / part / "image-references").write_text(json.dumps(references))
        for index, manifest in enumerate(_component(part, per_component)):
            text = yaml.dump(manifest, Dumper=yaml.CSafeDumper, sort_keys=False)
            size += len(text)
            (directory / part / f"0000_{level}_{part}_{index:02}.yaml").write_text(text)
    return size


def _component(part: str, count: int) -> Iterator[dict[str, Any]]:
    yield _manifest("v1", "Namespace", part)
    for plural in ("ships", "crews"):
        yield _manifest(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", _crd_name(part, plural)
        ) | {"spec": _crd(part, plural)}
    yield _manifest("apps/v1", "Deployment", part, namespace=part) | {"spec": _deployment(part)}
    yield _manifest("config.openshift.io/v1", "ClusterOperator", part) | {
        "status": {"versions": [{"name": "operator", "version": "0.0.1-snapshot"}]}
    }
    for index in range(count - 5):
        rules = [
            {"apiGroups": [f"g{rule}.example.test"], "resources": ["*"], "verbs": ["get", "list"]}
            for rule in range(12)
        ]
        yield _manifest("rbac.authorization.k8s.io/v1", "Role", f"role-{index}", namespace=part) | {
            "rules": rules
        }


def _manifest(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    annotations = {
        "kubernetes.io/description": "What this object is for, in a sentence or two.",
        "include.release.openshift.io/self-managed-high-availability": "true",
        "include.release.openshift.io/single-node-developer": "true",
        "exclude.release.openshift.io/internal-openshift-hosted": "true",
    }
    metadata: dict[str, Any] = {"name": name, "annotations": annotations}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _crd_name(part: str, plural: str) -> str:
    return f"{plural}.{part}.example.test"


def _crd(part: str, plural: str) -> dict[str, Any]:
    fields = {
        f"field{index}": {
            "type": "object",
            "description": "A field of the object, described at the length that real CRDs have: "
            "what it means, what happens when it is not set, and which values it can have.",
            "properties": {
                "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9-]+$"},
                "count": {"type": "integer", "minimum": 0, "description": "How many there are."},
            },
        }
        for index in range(50)
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "group": f"{part}.example.test",
        "names": names,
        "scope": "Cluster",
        "versions": [version],
    }


def _deployment(part: str) -> dict[str, Any]:
    environment = [
        {"name": "RELEASE_VERSION", "value": "0.0.1-snapshot"},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    container = {
        "name": part,
        "image": f"example.test/{part}",
        "args": ["start", "--config=/etc/config/config.yaml", "-v=2"],
        "env": environment,
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
    }
    labels = {"app": part}
    return {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }


if __name__ == "__main__":
    main()
