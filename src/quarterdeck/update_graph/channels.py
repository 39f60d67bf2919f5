"""A directory of channels as update graphs: what `release graph serve` answers with.

`stable-1.yaml` is the channel `stable-1`:

    releases:
    - version: 1.1.0
      image: registry.example.test/quarterdeck@sha256:…
      previous: [1.0.0]          the versions that can update to it
      url: https://…             its documentation; may be absent
    conditionalEdges: []         updates with known risks, as in the protocol

A file is read for each request, so a release is published by writing a file.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.payload.files import MAX_FILE, read_regular
from quarterdeck.strict_yaml import decode_yaml
from quarterdeck.strict_yaml.documents import Refusal
from quarterdeck.update_graph.model import CHANNELS, GraphInvalid, parse_graph

_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z", re.ASCII)
_ENDING = ".yaml"


class ChannelInvalid(Exception):  # noqa: N818 - a property of the file
    """A channel's file cannot be served; the message has the place and what to do."""


class _Release(msgspec.Struct, forbid_unknown_fields=True):
    version: str
    image: str
    previous: tuple[str, ...] = ()
    url: str = ""


class _Channel(msgspec.Struct, forbid_unknown_fields=True):
    releases: tuple[_Release, ...]
    conditional_edges: list[Any] = msgspec.field(name="conditionalEdges", default_factory=list)


def channels(directory: Path) -> tuple[str, ...]:
    """The names of the channels in a directory."""
    names = (path.name.removesuffix(_ENDING) for path in directory.glob(f"*{_ENDING}"))
    return tuple(sorted(name for name in names if _CHANNEL.match(name)))


def channel_graph(directory: Path, channel: str) -> bytes | None:
    """The graph of a channel as an answer; None if there is no such channel."""
    if not _CHANNEL.match(channel):
        return None
    try:
        data = read_regular(directory / f"{channel}{_ENDING}", MAX_FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ChannelInvalid(f"{channel}{_ENDING}: cannot be read: {error.strerror}") from error
    return _graph(channel, data.decode("utf-8", "replace"))


def _graph(channel: str, text: str) -> bytes:
    place = f"{channel}{_ENDING}"
    documents = list(decode_yaml(text))
    if len(documents) != 1:
        raise ChannelInvalid(f"{place}: {len(documents)} documents; write exactly one")
    (found,) = documents
    if isinstance(found, Refusal):
        raise ChannelInvalid(f"{place}:{found.line}: {found.message}; {found.remedy}")
    try:
        said = msgspec.convert(found.value, _Channel)
    except msgspec.ValidationError as error:
        raise ChannelInvalid(f"{place}: {error}; correct it") from error
    data = msgspec.json.encode(_protocol(channel, said))
    try:
        parse_graph(data)
    except GraphInvalid as error:
        raise ChannelInvalid(f"{place}: {error}; correct it") from error
    return data


def _protocol(channel: str, said: _Channel) -> dict[str, Any]:
    places = {release.version: number for number, release in enumerate(said.releases)}
    return {
        "nodes": [
            {
                "version": release.version,
                "payload": release.image,
                "metadata": {CHANNELS: channel} | ({"url": release.url} if release.url else {}),
            }
            for release in said.releases
        ],
        # A previous version that the channel does not have has no edge: nobody can ask for it.
        "edges": [
            [places[old], number]
            for number, release in enumerate(said.releases)
            for old in release.previous
            if old in places
        ],
        "conditionalEdges": said.conditional_edges,
    }
