"""Parts of a cluster beside the control plane, which `ControlPlane.add` takes.

The control plane starts, stops and watches their processes like its own.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol


class ExtraComponent(Protocol):
    """A component that brings its own command line and readiness."""

    @property
    def name(self) -> str:
        """The component's name, and that of its log."""

    @property
    def command(self) -> Sequence[str]:
        """The absolute path of its program, and the arguments."""

    @property
    def environment(self) -> Mapping[str, str]:
        """All its environment variables."""

    @property
    def descriptors(self) -> Sequence[int]:
        """The open files that its process inherits."""

    def prepare(self) -> None:
        """Do what must be done before each start."""

    def is_ready(self) -> bool:
        """Whether it answers that it is ready."""
