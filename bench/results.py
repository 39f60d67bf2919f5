"""What a run found: rows of figures by measurement, and the verdicts on the goals."""

from datetime import datetime

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one subject in one measurement, or why there are none."""

    subject: str
    figures: dict[str, float] = {}
    problem: str = ""
    """Empty if the subject ran to the end."""
    missing: bool = False
    """The subject could not be had at all."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that a table shows, and how."""

    figure: str
    title: str
    format: str = ",.0f"
    scale: float = 1.0
    unit: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A goal, and how close it came."""

    goal: str
    wanted: str
    reached: float | None
    met: bool
    unit: str = ""

    @property
    def text(self) -> str:
        """Met, or missed and by how much."""
        if self.reached is None:
            return "not measured"
        return "met" if self.met else "missed"


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One of the five measurements."""

    name: str
    title: str
    columns: list[Column]
    rows: list[Row]
    verdicts: list[Verdict] = []
    notes: list[str] = []

    def figure(self, subject: str, figure: str) -> float | None:
        """One figure of one subject; None where it is missing."""
        for row in self.rows:
            if row.subject == subject:
                return row.figures.get(figure)
        return None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run: where and when, and what was measured."""

    started: datetime
    seconds: float
    size: str
    machine: dict[str, str]
    versions: dict[str, str]
    measurements: list[Measurement]


def encoded(report: Report) -> bytes:
    """The report for programs."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2)
