"""Replaces versions, images, and the templates in the CVO's own manifests.

Templates and images are replaced in the text, before it is parsed: an image may be in JSON inside a
ConfigMap, and the braces of a template may not be valid YAML. Versions are replaced in the parsed
object, because `0.0.1-snapshot` is a placeholder in two fields only. `image_places` replaces images
that are plain words there too.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.payload.image_places import is_plain_word
from quarterdeck.payload.model import PLACEHOLDER_VERSION

OWN_COMPONENT = "cluster-version-operator"
"""The only component whose manifests are templates; in all others braces are text."""

_FIELD_OR_TEXT = re.compile(
    r"""\{\{\s*(?:\.(?P<field>\w+)|"(?P<text>(?:[^"\\\n]|\\.)*)"|`(?P<raw>[^`]*)`)\s*\}\}"""
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_SNAPSHOT = re.compile(rf"{re.escape(PLACEHOLDER_VERSION)}(?:-[\w.-]+)?\Z")
_IMAGE_CHARACTER = r"[\w./:@-]"


class TemplateFault(msgspec.Struct, frozen=True):
    """An unknown template."""

    line: int
    template: str
    known: tuple[str, ...]


def render_template(text: str, fields: Mapping[str, str]) -> str | TemplateFault:
    """The text with `{{.Field}}` and `{{ "text" }}` replaced, or the first unknown template."""
    parts = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        match = _FIELD_OR_TEXT.match(text, start)
        value = _template_value(match, fields) if match else None
        if match is None or value is None:
            shown = text[start : start + 60].partition("\n")[0]
            shown = shown[: shown.find("}}") + 2] if "}}" in shown else shown
            return TemplateFault(text.count("\n", 0, start) + 1, shown, tuple(sorted(fields)))
        parts += [text[at:start], value]
        at = match.end()
    return "".join([*parts, text[at:]])


def _template_value(match: re.Match[str], fields: Mapping[str, str]) -> str | None:
    if (field := match["field"]) is not None:
        return fields.get(field)
    if (raw := match["raw"]) is not None:
        return raw
    text = match["text"]
    if any(escape not in _ESCAPED for escape in _ESCAPE.findall(text)):
        return None
    return _ESCAPE.sub(lambda escape: _ESCAPED[escape[1]], text)


def image_pattern(images: Mapping[str, str]) -> re.Pattern[str] | None:
    """An expression that matches each of these images as a whole; None if there are none.

    Images that are plain words are not among them: they could be any other text.
    """
    sure = [image for image in images if not is_plain_word(image)]
    if not sure:
        return None
    # Longest first: the name of one image may be the start of another's.
    names = "|".join(re.escape(name) for name in sorted(sure, key=len, reverse=True))
    return re.compile(rf"(?<!{_IMAGE_CHARACTER})(?:{names})(?!{_IMAGE_CHARACTER})")


def replace_images(text: str, pattern: re.Pattern[str] | None, images: Mapping[str, str]) -> str:
    """The text with every image that the pattern matches replaced."""
    return text if pattern is None else pattern.sub(lambda match: images[match[0]], text)


def replace_versions(value: Object, version: str) -> Object:
    """The object with the release's version in place of the placeholder.

    The placeholder is in environment variables named RELEASE_VERSION, and in the versions of a
    ClusterOperator.
    """
    if not version:
        return value
    if value.get("kind") == "ClusterOperator":
        return _operator_versions(value, version)
    replaced: Object = _release_variables(value, version)
    return replaced


def _operator_versions(value: Object, version: str) -> Object:
    status = value.get("status")
    versions = status.get("versions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(versions, list):
        return value
    new = [
        operand | {"version": version}
        if isinstance(operand, dict) and _is_snapshot(operand.get("version"))
        else operand
        for operand in versions
    ]
    return value | {"status": status | {"versions": new}}


def _release_variables(value: Any, version: str) -> Any:
    if isinstance(value, dict):
        if value.get("name") == "RELEASE_VERSION" and _is_snapshot(value.get("value")):
            return value | {"value": version}
        return {key: _release_variables(child, version) for key, child in value.items()}
    if isinstance(value, list):
        return [_release_variables(child, version) for child in value]
    return value


def _is_snapshot(value: Any) -> bool:
    return isinstance(value, str) and _SNAPSHOT.match(value) is not None
