"""`python -m bench [--quick] [--only cache,latency]`: measure, show, and write the results."""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench import settings, table, tools
from bench.measure import cache, idle, latency, reconcile, scale
from bench.measure.run import Run
from bench.results import Measurement, Report, Row, encoded

RESULTS = tools.BENCH / "results"
SIZES = {"full": settings.FULL, "quick": settings.QUICK, "try": settings.TRY}

Measure = Callable[[Run], Awaitable[list[Measurement]]]

MEASURES: dict[str, Measure] = {
    "cache": cache.measure,
    "reconcile": reconcile.measure,
    "latency": latency.measure,
    "settled": idle.measure_settled,
    "start": idle.measure_start,
    "scale": scale.measure,
}
WITHOUT_PEERS = {"settled", "start", "scale"}
"""Those that have only ours and controller-runtime."""


def main() -> None:
    """Run what was asked for; the exit code says whether everything could be measured."""
    args = _arguments()
    started, clock = datetime.now(UTC), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        run = Run(
            sizes=SIZES[args.size],
            tools=tools.prepare(_say, peers=not WITHOUT_PEERS.issuperset(args.only)),
            directory=Path(directory),
            logs=RESULTS / "logs",
            only=args.subject,
        )
        measurements = asyncio.run(_measure(run, args.only))
    report = Report(
        started=started,
        seconds=time.monotonic() - clock,
        size=args.size,
        machine=_machine(),
        versions=tools.versions(run.tools),
        measurements=measurements,
    )
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{started:%Y%m%d-%H%M%S}-{args.size}.json"
    file.write_bytes(encoded(report))
    console = Console()
    table.show(report, console if console.is_terminal else Console(width=140))
    _say(f"written to {os.path.relpath(file)}")
    sys.exit(any(row.problem for found in measurements for row in found.rows))


async def _measure(run: Run, names: list[str]) -> list[Measurement]:
    """What could be measured; a measurement that fails as a whole says why, and the next begins."""
    found: list[Measurement] = []
    for name in names:
        try:
            found += await MEASURES[name](run)
        except Exception as error:
            traceback.print_exc()
            problem = Row(subject="all", problem=f"{type(error).__name__}: {error}")
            found.append(Measurement(name=name, title=name, columns=[], rows=[problem]))
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    sizes = parser.add_mutually_exclusive_group()
    for name, what in (("quick", "smaller sizes"), ("try", "only to see it work")):
        sizes.add_argument(
            f"--{name}", dest="size", action="store_const", const=name, default="full", help=what
        )
    parser.add_argument(
        "--only",
        type=_names,
        default=list(MEASURES),
        help=f"measurements, separated by commas: {','.join(MEASURES)}",
    )
    parser.add_argument(
        "--subject", action="append", default=[], help="only this subject; may be repeated"
    )
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in MEASURES]:
        raise argparse.ArgumentTypeError(
            f"no measurement {unknown[0]!r}: choose from {','.join(MEASURES)}"
        )
    return names


def _machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 1e9:.0f} GB",
        "kernel": platform.release(),
        "load before": f"{os.getloadavg()[2]:.1f}",
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


main()
