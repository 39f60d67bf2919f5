"""The log level in a configuration file: a ClusterVersionOperator manifest. Pure.

A hosted control plane has its configuration in a file, because the administrators of the hosted
cluster must not set it. The file is strict where the object in the API server is lenient: nobody
can report on it to its author, and a part of a file must not count as a whole one.
"""

from collections.abc import Iterator
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS
from quarterdeck.operators.cluster_version.log_level.decision import STARTUP, LevelDecision
from quarterdeck.operators.cluster_version.log_level.levels import (
    CONFIG_NAME,
    LEVELS,
    NORMAL,
    known_level,
)
from quarterdeck.strict_yaml import decode_yaml
from quarterdeck.strict_yaml.documents import Document, Refusal

MAX_BYTES = 1 << 20
"""The most bytes of the file; a ConfigMap has no more."""
_SHOWN = 60
"""The most characters of a value that a message shows."""


class InvalidConfigFile(Exception):  # noqa: N818 - reads as what it is
    """Why the file is not a configuration, and the remedy, in one line."""


def level_in(data: bytes) -> str:
    """The level that the file asks for; `InvalidConfigFile` if it is not a configuration."""
    level = _level_of(data)
    if not data.endswith(b"\n"):
        # `Trace` may be the beginning of `TraceAll`.
        raise InvalidConfigFile("the last line has no end: write all of it, and a line break")
    return level


def _level_of(data: bytes) -> str:
    manifest = _manifest(data)
    for field, found, wanted in _fixed_fields(manifest):
        if found != wanted:
            raise InvalidConfigFile(f"{field}: {_shown(found)}: this release reads only {wanted}")
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        raise InvalidConfigFile(f"spec: {_shown(spec)}: write an object; {{}} is the default")
    if "operatorLogLevel" not in spec or spec["operatorLogLevel"] == "":
        return NORMAL
    level = known_level(spec["operatorLogLevel"])
    if level is None:
        raise InvalidConfigFile(
            f"spec.operatorLogLevel: {_shown(spec['operatorLogLevel'])}: "
            f"choose one of {', '.join(LEVELS)}"
        )
    return level


def decide_by_file(level: str | None, startup: int) -> LevelDecision:
    """The verbosity for a file's level, never below that of the start; None if there was none."""
    if level is None:
        why = "there was no valid configuration file yet"
        return LevelDecision(level=STARTUP, verbosity=startup, why=why)
    verbosity = max(startup, LEVELS[level])
    return LevelDecision(level=level, verbosity=verbosity, why="the configuration file says so")


def _manifest(data: bytes) -> Object:
    if len(data) > MAX_BYTES:
        raise InvalidConfigFile(f"more than {MAX_BYTES} bytes: write only the manifest")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidConfigFile(f"byte {error.start} is not UTF-8: write it again") from None
    documents = list(decode_yaml(text))
    for document in documents:
        if isinstance(document, Refusal):
            raise InvalidConfigFile(f"line {document.line}: {document.message}: {document.remedy}")
    match documents:
        case [Document(value=dict() as manifest)]:
            return manifest
        case [Document(value=other)]:
            raise InvalidConfigFile(f"{_shown(other)}: write a ClusterVersionOperator manifest")
        case _:
            raise InvalidConfigFile(f"{len(documents)} documents: write exactly one")


def _fixed_fields(manifest: Object) -> Iterator[tuple[str, Any, str]]:
    """The fields that can have one value only, with what the manifest has there."""
    yield "apiVersion", manifest.get("apiVersion"), CLUSTER_VERSION_OPERATORS.api_version
    yield "kind", manifest.get("kind"), CLUSTER_VERSION_OPERATORS.kind
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    yield "metadata.name", name, CONFIG_NAME


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
