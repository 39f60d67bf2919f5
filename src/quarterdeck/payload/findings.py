"""The findings of lint: place, severity, field, value, message and remedy."""

from enum import StrEnum

import msgspec

from quarterdeck.payload.model import Manifest, PayloadProblem


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Applying the payload fails, or does something that its author cannot intend."""
    WARNING = "warning"
    """Probably a mistake."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a payload."""

    severity: Severity
    code: str
    """A short name of the rule, for searching and filtering."""
    file: str
    document: int | None = None
    line: int | None = None
    path: tuple[str | int, ...] = ()
    """The path of the field in the document; `field` is the same as text."""
    value: str
    message: str
    remedy: str

    @property
    def field(self) -> str:
        """The path of the field as text: `spec.rules[0].name`."""
        text = ""
        for part in self.path:
            plain = isinstance(part, str) and part.isidentifier()
            text += f".{part}" if plain else f"[{part}]"
        return text.removeprefix(".")

    @property
    def place(self) -> str:
        """The place as `file:line`, for editors."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


def error(
    code: str,
    manifest: Manifest,
    path: tuple[str | int, ...],
    value: object,
    message: str,
    remedy: str,
) -> Finding:
    """An error in a field of a manifest."""
    return _finding(Severity.ERROR, code, manifest, path, value, message, remedy)


def warning(
    code: str,
    manifest: Manifest,
    path: tuple[str | int, ...],
    value: object,
    message: str,
    remedy: str,
) -> Finding:
    """A warning about a field of a manifest."""
    return _finding(Severity.WARNING, code, manifest, path, value, message, remedy)


def unreadable(problem: PayloadProblem) -> Finding:
    """The finding for a problem of loading."""
    return Finding(
        severity=Severity.ERROR,
        code="unreadable",
        file=problem.file,
        document=problem.document,
        line=problem.line,
        value="",
        message=problem.message,
        remedy=problem.remedy,
    )


def _finding(
    severity: Severity,
    code: str,
    manifest: Manifest,
    path: tuple[str | int, ...],
    value: object,
    message: str,
    remedy: str,
) -> Finding:
    return Finding(
        severity=severity,
        code=code,
        file=manifest.file,
        document=manifest.document,
        line=manifest.line,
        path=path,
        value=value if isinstance(value, str) else repr(value),
        message=message,
        remedy=remedy,
    )
