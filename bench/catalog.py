"""`python -m bench.catalog`: a catalog of 5,000 bundles: load time, memory, one resolution.

The bundles are copies of one with a ClusterServiceVersion and a definition with a large schema,
about 40 kB each, ten versions to a package. Beside it, the standard library decodes the same files
once, without looking at what is in them. Times are of the CPU, so that they mean something beside
other work. It needs no cluster.
"""

import argparse
import base64
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path

from quarterdeck.operators.subscriptions.catalog.channels import next_entry
from quarterdeck.operators.subscriptions.catalog.files import directory_files
from quarterdeck.operators.subscriptions.catalog.installable import Installable, installable
from quarterdeck.operators.subscriptions.catalog.load import load
from quarterdeck.operators.subscriptions.catalog.model import Catalog
from quarterdeck.versions import parse_version

VERSIONS = 10
RESOLVED = 20
FIELDS = 110
"""Fields of the schema, each about 300 bytes."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=int, default=5_000)
    wanted = parser.parse_args().bundles
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        _write(Path(directory), wanted)
        bare = _bare(Path(directory))
        before = _peak()
        began = time.process_time()
        loaded = load(directory_files(Path(directory)))
        took = time.process_time() - began
        assert not loaded.findings, loaded.findings[:3]
    resolved = [_resolved(loaded.catalog, f"p{number}") for number in range(RESOLVED)]
    print(f"{'bundles':<28}{loaded.catalog.bundle_count:>10,}")
    print(f"{'load, s of CPU':<28}{took:>10.2f}")
    print(f"{'json and base64 alone, s':<28}{bare:>10.2f}")
    print(f"{'memory for it, MB':<28}{(_peak() - before) / 1024:>10.0f}")
    print(f"{'resolve one update, ms':<28}{statistics.median(resolved) * 1000:>10.2f}")
    print(f"{'resolve the first one, ms':<28}{resolved[0] * 1000:>10.2f}")


def _resolved(catalog: Catalog, name: str) -> float:
    """The seconds to find the next version of a package, and to unpack and check its bundle."""
    package = catalog.packages[name]
    began = time.process_time()
    channel, version = package.channels["c"], parse_version("1.1.0")
    entry = next_entry(channel, f"{name}.v1.1.0", version, package.bundles)
    assert entry is not None
    assert isinstance(installable(package.bundles[entry.name]), Installable)
    return time.process_time() - began


def _bare(directory: Path) -> float:
    """The seconds to decode all entries and objects with the standard library."""
    began = time.process_time()
    for path in sorted(directory.iterdir()):
        for line in path.read_text().splitlines():
            for one in json.loads(line).get("properties", ()):
                if one["type"] == "olm.bundle.object":
                    json.loads(base64.b64decode(one["value"]["data"]))
    return time.process_time() - began


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _write(directory: Path, wanted: int) -> None:
    for number in range(wanted // VERSIONS):
        name = f"p{number}"
        entries: list[dict[str, object]] = [
            {"schema": "olm.package", "name": name, "defaultChannel": "c"},
            {
                "schema": "olm.channel",
                "package": name,
                "name": "c",
                "entries": [
                    {"name": f"{name}.v1.{minor}.0"}
                    | ({"replaces": f"{name}.v1.{minor - 1}.0"} if minor else {})
                    for minor in range(VERSIONS)
                ],
            },
        ]
        entries += [_bundle(name, minor) for minor in range(VERSIONS)]
        (directory / f"{name}.json").write_text("\n".join(map(json.dumps, entries)))


def _bundle(package: str, minor: int) -> dict[str, object]:
    name, version = f"{package}.v1.{minor}.0", f"1.{minor}.0"
    crd = f"ks.{package}.example.com"
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name},
        "spec": {
            "displayName": name,
            "version": version,
            "description": "An operator. " * 200,
            "customresourcedefinitions": {"owned": [{"name": crd, "version": "v1", "kind": "K"}]},
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    }
    objects = [base64.b64encode(json.dumps(one).encode()).decode() for one in (csv, _crd(crd))]
    stated = {"packageName": package, "version": version}
    return {
        "schema": "olm.bundle",
        "package": package,
        "name": name,
        "properties": [
            {"type": "olm.package", "value": stated},
            *({"type": "olm.bundle.object", "value": {"data": data}} for data in objects),
        ],
    }


def _crd(name: str) -> dict[str, object]:
    fields = {
        f"field{number}": {
            "type": "object",
            "description": f"What field {number} is for, in a sentence as definitions have it.",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 253},
                "value": {"type": "integer", "minimum": number, "maximum": 1 << 16},
                "parts": {"type": "array", "items": {"type": "string", "maxLength": 63}},
            },
        }
        for number in range(FIELDS)
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": fields}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": name.partition(".")[2],
            "names": {"plural": "ks", "kind": "K"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


if __name__ == "__main__":
    main()
