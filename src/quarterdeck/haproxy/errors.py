"""What is refused before it reaches a configuration, and what HAProxy itself refuses.

HAProxyError
├── RefusedTextError    a text that cannot be written into a configuration: position and reason
├── InvalidVariableError  a variable of the router's environment: name, value, remedy
└── CheckError          HAProxy could not be asked at all
"""


class HAProxyError(Exception):
    """The base of this package's errors."""


class RefusedTextError(HAProxyError):
    """A text cannot be used: its position (from 0), the refused part, and the reason."""

    def __init__(self, position: int, part: str, reason: str) -> None:
        super().__init__(f"character {position + 1} ({part!r}): {reason}")
        self.position, self.part, self.reason = position, part, reason


class InvalidVariableError(HAProxyError):
    """A variable of the environment cannot be used: its name, its value, and the remedy."""

    def __init__(self, name: str, value: str, remedy: str) -> None:
        super().__init__(f"{name}={value!r}: {remedy}")
        self.name, self.value, self.remedy = name, value, remedy


class CheckError(HAProxyError):
    """HAProxy could not be run, so nothing is known about the configuration."""
