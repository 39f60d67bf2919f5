"""Formats explanations of IngressControllers. Pure."""

import click

from quarterdeck.cli.output import readable
from quarterdeck.operators.ingress.explain import Consequences, IngressExplanation

NO_LOGS = "requests are not logged"
NO_SAMPLE = "no sample: HAProxy is not installed here"


def as_text(found: IngressExplanation) -> str:
    """The verdict, then the environment, haproxy.cfg, a line, and what would change."""
    found = readable(found)
    parts = [_verdict(found)]
    if found.environment:
        parts.append(_block("environment of the router", _variables(found.environment)))
    if found.haproxy_lines:
        lines = [
            line
            for section in found.haproxy_lines
            for line in (section.name, *(f"  {each}" for each in section.lines))
        ]
        parts.append(_block("lines of haproxy.cfg for access logs", lines))
        parts.append(_block("a sample access line", [found.sample_line or NO_SAMPLE]))
    elif found.admitted:
        parts.append(_block("access logs", [NO_LOGS]))
    if found.consequences is not None:
        parts.append(_consequences(found.consequences))
    return "\n\n".join(parts)


def _verdict(found: IngressExplanation) -> str:
    admitted = "yes" if found.admitted else f"no: {found.reason}"
    facts = [
        ("ingress controller", found.name),
        ("admitted", click.style(admitted, fg="green" if found.admitted else "red")),
        ("published by", found.publishing),
    ]
    if found.message:
        facts.insert(2, ("because" if not found.admitted else "note", found.message))
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts)


def _variables(environment: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(environment.items())]


def _consequences(found: Consequences) -> str:
    rolls = f"{'yes' if found.pods_roll else 'no'}: {found.reason}"
    lines = [f"pods are replaced: {rolls}"]
    if not found.changes:
        lines.append("nothing changes")
    for change in found.changes:
        lines.append(f"{change.action} {change.object}")
        lines += [f"  {detail}" for detail in change.details]
    return _block("in the cluster", lines)


def _block(title: str, lines: list[str]) -> str:
    return "\n".join([click.style(title, bold=True), *(f"  {line}" for line in lines)])
