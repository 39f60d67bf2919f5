"""Distributions as files in a directory, with nothing in them but what they declare."""

from importlib.metadata import EntryPoint, distributions
from pathlib import Path

from quarterdeck.delivery.registry import GROUP


def write_distribution(directory: Path, name: str, entries: dict[str, str]) -> None:
    """Install a distribution that has these entry points."""
    info = directory / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{entry} = {value}" for entry, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))


def entries_in(directory: Path) -> list[EntryPoint]:
    """The operators' entry points of the distributions in a directory."""
    return [
        entry
        for distribution in distributions(path=[str(directory)])
        for entry in distribution.entry_points.select(group=GROUP)
    ]
