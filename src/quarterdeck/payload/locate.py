"""Finds the line of a field, because findings are made from data without lines.

Only files with findings are parsed again.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec
import yaml

from quarterdeck.payload.findings import Finding
from quarterdeck.strict_yaml import split_yaml


def with_lines(findings: Iterable[Finding], directories: Sequence[Path]) -> tuple[Finding, ...]:
    """The findings with the line of their field, or of their document if it is not found."""
    top = directories[0] if len(directories) == 1 else Path()

    @cache
    def text_of(file: str) -> str:
        try:
            return (top / file).read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            return ""

    return tuple(
        msgspec.structs.replace(finding, line=line)
        if finding.path
        and finding.document is not None
        and (line := line_of(text_of(finding.file), finding.document, finding.path))
        else finding
        for finding in findings
    )


def line_of(text: str, document: int, path: tuple[str | int, ...]) -> int | None:
    """The line of a field, or of the deepest part of its path that exists."""
    for number, line, part in split_yaml(text):
        if number == document:
            try:
                node = yaml.compose(part, Loader=yaml.CSafeLoader)
            except yaml.YAMLError:
                return None
            return line + _deepest(node, path)
    return None


def _deepest(node: yaml.Node | None, path: tuple[str | int, ...]) -> int:
    found: int = node.start_mark.line if node is not None else 0
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == part), None)
            if pair is None:
                break
            found, node = pair[0].start_mark.line, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            found = node.start_mark.line
    return found
