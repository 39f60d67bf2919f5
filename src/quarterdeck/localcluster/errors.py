"""The errors of a local cluster; each message is one line with a remedy.

LocalClusterError
  ├── StateUnusable     the state directory is of another version, owner or full
  ├── PortTaken         another program listens where a component has to
  ├── AlreadyRunning    another supervisor holds this state directory
  ├── ComponentCrashed  a component ended before it was ready
  └── NotReady          a component lives, but did not get ready in time

The names describe the state, so they do not end in `Error`.
"""


class LocalClusterError(Exception):
    """A local cluster cannot do what was asked; the message is one line for people."""


class StateUnusable(LocalClusterError):  # noqa: N818
    """The state directory cannot be used as it is."""


class PortTaken(LocalClusterError):  # noqa: N818
    """A port of the cluster is used by another program."""


class AlreadyRunning(LocalClusterError):  # noqa: N818
    """Another supervisor runs this cluster."""


class _WithLog(LocalClusterError):  # noqa: N818
    """An error of a component; its last log lines are shown below a traceback."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log
        self.add_note(log)


class ComponentCrashed(_WithLog):
    """A component ended before it was ready; `log` holds the last lines that it wrote."""


class NotReady(_WithLog):
    """A component did not get ready in time; `log` holds the last lines that it wrote."""
