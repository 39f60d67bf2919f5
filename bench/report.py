"""What a benchmark that is run by itself found: shown, and written to a file of its own."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from bench.results import Measurement
from bench.table import show_measurement

RESULTS = Path(__file__).parent / "results"


def report(name: str, found: list[Measurement]) -> None:
    """Show measurements, and write them for programs under the benchmark's name."""
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    for measurement in found:
        show_measurement(measurement, console)
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{name}.json"
    machine = {"python": platform.python_version(), "cpus": os.cpu_count()}
    whole = {"machine": machine, "load": os.getloadavg(), "measurements": found}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=2))
    console.print(f"written to {os.path.relpath(file)}")
