"""Whether what an operator was asked for is done, from what the server tells. Pure.

A Widget is settled when its ConfigMap carries its round, and its status the generation that it
has. Fed with watch events; knows the count at any time without looking through all objects.
"""

import msgspec


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    generation: int = 0
    resource_version: str = ""


class _Spec(msgspec.Struct):
    round: int = -1


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int = 0


class _Seen(msgspec.Struct):
    """As much of a Widget or a ConfigMap as matters."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)
    data: dict[str, str] = {}


class _Event(msgspec.Struct):
    type: str
    object: _Seen


_decode = msgspec.json.Decoder(_Event).decode


class Settlement:
    """How many Widgets are settled in the wanted round."""

    def __init__(self, round_: int = 0) -> None:
        self.round = round_
        self.settled = 0
        self.widget_version = self.config_map_version = ""
        """The resource versions up to which each watch has told everything."""
        self._widgets: dict[str, tuple[bool, bool]] = {}  # in the round; status says so
        self._config_maps: dict[str, str] = {}  # their round

    def want(self, round_: int) -> None:
        """From now on this round counts; no Widget is in it yet."""
        self.round = round_
        self.settled = 0
        self._widgets = dict.fromkeys(self._widgets, (False, False))

    def widget_event(self, line: bytes) -> str:
        """A Widget was added or changed; its name."""
        seen = _decode(line).object
        name = seen.metadata.name
        self.widget_version = seen.metadata.resource_version
        before = self._is_settled(name)
        self._widgets[name] = (
            seen.spec.round == self.round,
            seen.status.observed_generation == seen.metadata.generation,
        )
        self.settled += self._is_settled(name) - before
        return name

    def config_map_event(self, line: bytes) -> tuple[str, str]:
        """A ConfigMap was added or changed; its name and round."""
        seen = _decode(line).object
        name, round_ = seen.metadata.name, seen.data.get("round", "")
        self.config_map_version = seen.metadata.resource_version
        before = self._is_settled(name)
        self._config_maps[name] = round_
        self.settled += self._is_settled(name) - before
        return name, round_

    def _is_settled(self, name: str) -> bool:
        in_round, said = self._widgets.get(name, (False, False))
        return in_round and said and self._config_maps.get(name) == str(self.round)
