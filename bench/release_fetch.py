"""`python -m bench.release_fetch`: fetch a release of 900 manifests from a registry, and accept it.

The registry is Debian's docker-registry on loopback, with TLS and a password. The peer is
`skopeo copy` of the same image into a directory. The image has no layer but the release. skopeo
unpacks nothing. Ours checks the signature, unpacks and seals (`fetch`), and reads every manifest
as the operator does before it begins an update (`accept`). Each run is a process of its own, in
turns, and the median counts; the operator runs already when it fetches, so the start of Python and
the imports are not in `fetch` and `accept`.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.registry_process import RunningRegistry, running_registry
from tests.release_images import CONFIG, new_key, public_pem, signatures_of

from bench.goals import at_most
from bench.payload import MANIFESTS, generate
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.oci.layers import Image, image, layer_bytes, tree_entries
from quarterdeck.oci.signature import signature_tag
from quarterdeck.payload.releases import load_release, read_fetched
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import read_pull_secret
from quarterdeck.registry.push import push_image
from quarterdeck.registry.reference import parse_reference
from quarterdeck.registry.release_image import fetch_release, verification_key
from quarterdeck.registry.release_store import ReleaseStore
from quarterdeck.web import Web

NAME = "bench/release:1.0.0"
OURS, PEER = "quarterdeck", "skopeo copy"


def main() -> None:
    """Measure, show and write; with `--fetch`, be one run of ours."""
    parser = argparse.ArgumentParser(prog="python -m bench.release_fetch", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--fetch", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fetch:
        print(json.dumps(asyncio.run(_fetch(*arguments.fetch))))
        return
    with tempfile.TemporaryDirectory(prefix="bench-release-") as name:
        directory = Path(name)
        with running_registry(directory) as registry:
            size = asyncio.run(_push(registry, directory))
            report("release-fetch", [_measure(registry, directory, arguments.repeats, size)])


async def _fetch(
    reference: str, into: str, secret: str, ca_file: str, key: str
) -> dict[str, float]:
    """What the operator does with a requested image, up to the decision."""
    with open(key, "rb") as file:  # noqa: ASYNC230, PTH123 - nothing else runs here
        known = verification_key(file.read())
    import aiohttp  # noqa: F401 - the operator has imported it long before

    began, cpu = time.perf_counter(), time.process_time()
    async with Web(ca_file=ca_file) as web:
        registry = Registry(web, credentials=read_pull_secret(secret))
        await fetch_release(registry, parse_reference(reference), ReleaseStore(Path(into)), known)
    fetched, fetched_cpu = time.perf_counter(), time.process_time()
    (offer,) = read_fetched(Path(into))
    payload = load_release(offer, "self-managed-high-availability")
    assert len(payload.manifests) == MANIFESTS
    assert offer.verified_by == known.identifier
    return {
        "fetch": fetched - began,
        "fetch_cpu": fetched_cpu - cpu,
        "accept": time.perf_counter() - fetched,
        "accept_cpu": time.process_time() - fetched_cpu,
    }


async def _push(registry: RunningRegistry, directory: Path) -> int:
    """Push the release and its signature; the bytes of its manifests."""
    payload = directory / "payload"
    payload.mkdir()
    size = generate(payload)
    (payload / "release-metadata").write_text(json.dumps({"version": "1.0.0"}))
    layer, data = layer_bytes(tree_entries(payload, "release-manifests"))
    release: Image = image(CONFIG, [layer], {layer.descriptor.digest: data})
    key = new_key()
    (directory / "key.pub").write_bytes(public_pem(key))
    target = parse_reference(f"{registry.address}/{NAME}")
    async with Web(ca_file=str(registry.tls.ca)) as web:
        client = Registry(web, credentials=read_pull_secret(str(registry.secret)))
        pushed = await push_image(client, target, release)
        signature = signatures_of(pushed.name, pushed.digest, key)
        await push_image(client, target.tagged(signature_tag(pushed.digest)), signature)
    return size


def _measure(registry: RunningRegistry, directory: Path, repeats: int, size: int) -> Measurement:
    runs: dict[str, list[dict[str, float]]] = {OURS: [], PEER: []}
    for number in range(repeats):
        for subject, command in _commands(registry, directory, number):
            runs[subject].append(_timed(command))
    rows = [
        Row(
            subject=subject,
            figures={name: statistics.median(one[name] for one in found) for name in found[0]},
        )
        for subject, found in runs.items()
    ]
    ours, peer = (row.figures for row in rows)
    return Measurement(
        name="release-fetch",
        title=f"a release of {MANIFESTS} manifests, {size / 1e6:.1f} MB: median of {repeats}",
        columns=[
            Column(figure="fetch", title="fetch", scale=1000, unit=" ms"),
            Column(figure="fetch_cpu", title="its CPU", scale=1000, unit=" ms"),
            Column(figure="accept", title="accept", scale=1000, unit=" ms"),
            Column(figure="accept_cpu", title="its CPU", scale=1000, unit=" ms"),
            Column(figure="megabytes", title="peak", unit=" MB"),
        ],
        rows=rows,
        verdicts=[
            at_most("time to fetch, to skopeo copy", 5, _ratio(ours, peer, "fetch")),
            at_most(
                "time to fetch and accept, to skopeo copy",
                20,
                (ours["fetch"] + ours["accept"]) / peer["fetch"],
            ),
            at_most("peak memory, to skopeo copy", 2, _ratio(ours, peer, "megabytes")),
        ],
        notes=["ours also verifies, unpacks, seals and parses all manifests; skopeo only copies"],
    )


def _ratio(ours: dict[str, float], peer: dict[str, float], figure: str) -> float:
    return ours[figure] / peer[figure]


def _commands(
    registry: RunningRegistry, directory: Path, number: int
) -> Iterator[tuple[str, list[str]]]:
    certificates = directory / "certificates"
    certificates.mkdir(exist_ok=True)
    (certificates / "ca.crt").write_bytes(registry.tls.ca.read_bytes())
    reference = f"{registry.address}/{NAME}"
    into = str(directory / f"ours-{number}")
    settings = [str(registry.secret), str(registry.tls.ca), str(directory / "key.pub")]
    yield OURS, [sys.executable, "-m", "bench.release_fetch", "--fetch", reference, into, *settings]
    options = [f"--src-cert-dir={certificates}", f"--src-authfile={registry.secret}"]
    place = f"dir:{directory / f'peer-{number}'}"
    yield PEER, ["skopeo", "copy", "--quiet", *options, f"docker://{reference}", place]


def _timed(command: list[str]) -> dict[str, float]:
    """The figures of a process: its own where it prints some, else those of the whole."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        output.seek(0)
        printed = output.read()
    whole = {"fetch": seconds, "fetch_cpu": used.ru_utime + used.ru_stime}
    figures: dict[str, float] = json.loads(printed) if printed else whole
    return figures | {"megabytes": used.ru_maxrss / 1024}


if __name__ == "__main__":
    main()
