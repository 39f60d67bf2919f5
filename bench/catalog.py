"""`python -m bench.catalog`: a catalog of 5,000 bundles: load time, memory, one resolution.

The bundles are copies of one with a ClusterServiceVersion and a definition, about 40 kB each, ten
versions to a package. It needs no cluster.
"""

import argparse
import base64
import json
import resource
import tempfile
import time
from pathlib import Path

from quarterdeck.operators.subscriptions.catalog.channels import next_entry
from quarterdeck.operators.subscriptions.catalog.files import directory_files
from quarterdeck.operators.subscriptions.catalog.installable import installable
from quarterdeck.operators.subscriptions.catalog.load import load
from quarterdeck.versions import parse_version

VERSIONS = 10
DESCRIPTION = "x" * 40_000


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=int, default=5_000)
    wanted = parser.parse_args().bundles
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        _write(Path(directory), wanted)
        before = _peak()
        began = time.monotonic()
        loaded = load(directory_files(Path(directory)))
        took = time.monotonic() - began
        assert not loaded.findings, loaded.findings[:3]
    package = loaded.catalog.packages["p1"]
    began = time.monotonic()
    entry = next_entry(package.channels["c"], "p1.v1.1.0", parse_version("1.1.0"))
    assert entry is not None
    installable(package.bundles[entry.name])
    resolved = time.monotonic() - began
    print(f"{'bundles':<28}{loaded.catalog.bundle_count:>10,}")
    print(f"{'load, s':<28}{took:>10.2f}")
    print(f"{'memory for it, MB':<28}{(_peak() - before) / 1024:>10.0f}")
    print(f"{'resolve one update, ms':<28}{resolved * 1000:>10.2f}")


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
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name},
        "spec": {
            "displayName": name,
            "version": version,
            "description": DESCRIPTION,
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    }
    data = base64.b64encode(json.dumps(csv).encode()).decode()
    stated = {"packageName": package, "version": version}
    return {
        "schema": "olm.bundle",
        "package": package,
        "name": name,
        "properties": [
            {"type": "olm.package", "value": stated},
            {"type": "olm.bundle.object", "value": {"data": data}},
        ],
    }


if __name__ == "__main__":
    main()
