"""The state directory of one local cluster: what lies where in it, and who may use it.

It holds keys and etcd's data, so it belongs to one user alone (0700). It remembers its format
and its Kubernetes version, and is not used with another one. At most one supervisor works on
it: the one that holds the lock.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries import KUBERNETES_VERSION
from quarterdeck.localcluster.errors import AlreadyRunning, StateUnusable

STATE_FORMAT = 1

ENOUGH_DISK = 256 * 1024 * 1024
"""etcd alone preallocates two 64 MB log segments; with less than this a start would fail."""


class Version(msgspec.Struct, frozen=True):
    """What a state directory was made by."""

    format: int
    kubernetes: str


THIS_VERSION = Version(format=STATE_FORMAT, kubernetes=KUBERNETES_VERSION)


class Layout(msgspec.Struct, frozen=True):
    """Where each thing lies in a state directory."""

    root: Path

    @property
    def version(self) -> Path:
        """The format and Kubernetes version of this directory."""
        return self.root / "version.json"

    @property
    def ports(self) -> Path:
        """The ports that were chosen for this cluster."""
        return self.root / "ports.json"

    @property
    def lock(self) -> Path:
        """Locked by the supervisor for as long as it lives."""
        return self.root / "lock"

    @property
    def status(self) -> Path:
        """What the supervisor last said about itself and its components."""
        return self.root / "status.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.root / "pki"

    @property
    def kubeconfigs(self) -> Path:
        """The kubeconfigs of the components and of users that were asked for."""
        return self.root / "kubeconfigs"

    @property
    def etcd_data(self) -> Path:
        """All that the cluster knows."""
        return self.root / "etcd"

    @property
    def etcd_begins(self) -> Path:
        """There while etcd has not been ready once: its data is nobody's yet."""
        return self.root / "etcd-begins"

    @property
    def pods(self) -> Path:
        """The volumes and logs of the pods on the node `this-machine`."""
        return self.root / "pods"

    @property
    def manifests(self) -> Path:
        """The static pods of the node `this-machine`, a file for each."""
        return self.root / "manifests"

    @property
    def own_manifests(self) -> Path:
        """A link to the user's own directory of static pods, while one is named."""
        return self.root / "own-manifests"

    def credentials_of(self, pod: str) -> Path:
        """What a static pod of this name gets to prove who it is: a directory that it sees."""
        return self.root / "credentials" / pod

    @property
    def logs(self) -> Path:
        """One log file per component, and the supervisor's."""
        return self.root / "logs"

    @property
    def audit_log(self) -> Path:
        """One line per request, when auditing is on."""
        return self.root / "logs" / "audit.log"

    @property
    def audit_policy(self) -> Path:
        """What the API server writes to the audit log."""
        return self.root / "audit-policy.yaml"

    @property
    def kubectl_cache(self) -> Path:
        """The cache of kubectl, kept out of the user's home directory."""
        return self.root / "kubectl-cache"

    def log_of(self, component: str) -> Path:
        """The log file of a component."""
        return self.logs / f"{component}.log"

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of a component or a user, by a name that is safe as a file's."""
        return self.kubeconfigs / f"{user.replace('/', '_').replace(':', '_')}.kubeconfig"


def write_private(path: Path, data: bytes, *, owner: int = -1) -> None:
    """Replace a file by one that only its owner can read, all at once; -1 is ourselves."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchown(descriptor, owner, -1)
        file.write(data)
    beside.replace(path)


def prepare(layout: Layout) -> None:
    """Make the state directory usable, or say why it is not.

    A directory that is there already must be of this version and of this user.
    """
    with _explained(layout.root):
        layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_owner(layout)
        layout.root.chmod(0o700)
        check_version(layout)
        check_space(layout.root)
        for directory in (layout.pki, layout.kubeconfigs, layout.logs):
            directory.mkdir(mode=0o700, exist_ok=True)
        if not layout.version.exists():
            write_private(layout.version, msgspec.json.encode(THIS_VERSION))


def check_version(layout: Layout) -> None:
    """Refuse a directory that another version of Quarterdeck or Kubernetes has made."""
    try:
        found = msgspec.json.decode(layout.version.read_bytes(), type=Version)
    except FileNotFoundError:
        if layout.etcd_data.exists():
            raise StateUnusable(
                f"{layout.root} has a cluster in it but no {layout.version.name}; "
                f"{_remove_remedy(layout.root)}"
            ) from None
        return
    except msgspec.DecodeError:
        raise StateUnusable(
            f"{layout.version} is not readable; {_remove_remedy(layout.root)}"
        ) from None
    if found != THIS_VERSION:
        raise StateUnusable(
            f"{layout.root} was made for Kubernetes {found.kubernetes} (state format "
            f"{found.format}), this is Kubernetes {KUBERNETES_VERSION} (state format "
            f"{STATE_FORMAT}); {_remove_remedy(layout.root)}"
        )


def begin_data(layout: Layout) -> None:
    """Let etcd begin, anew if it was stopped before it was ever ready.

    An etcd that is killed between making its log and writing down that it is its own cluster
    elects nobody from then on: measured, 3 of 120 kills at random in its first quarter second.
    """
    if layout.etcd_begins.exists():
        shutil.rmtree(layout.etcd_data, ignore_errors=True)
    elif not layout.etcd_data.exists():
        layout.etcd_begins.touch()


def data_has_begun(layout: Layout) -> None:
    """Keep etcd's data from now on: it is ready."""
    layout.etcd_begins.unlink(missing_ok=True)


class Lock:
    """Holds a state directory alone; the kernel lets go when this process ends."""

    def __init__(self, layout: Layout) -> None:
        self._file = layout.lock.open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise AlreadyRunning(f"the cluster in {layout.root} runs already") from None

    def release(self) -> None:
        """Let the next one have it."""
        self._file.close()


def is_locked(layout: Layout) -> bool:
    """Whether a supervisor holds this state directory now."""
    try:
        with layout.lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True
    return False


def check_owner(layout: Layout) -> None:
    """Refuse another user's directory; one that is not there yet is nobody's."""
    try:
        owner, user = layout.root.stat().st_uid, os.geteuid()
    except OSError:  # who wants to use it will be told why that is not possible
        return
    if owner != user:
        raise StateUnusable(
            f"{layout.root} belongs to user id {owner}, you are {user}; "
            "run as that user, or choose another place with --state-dir"
        )


def check_space(root: Path) -> None:
    """Refuse a disk on which etcd would not start."""
    free = shutil.disk_usage(root).free
    if free < ENOUGH_DISK:
        raise StateUnusable(
            f"the disk of {root} is full: {free // 2**20} MB free, {ENOUGH_DISK // 2**20} MB "
            "are needed; free some, or choose another place with --state-dir"
        )


def _remove_remedy(root: Path) -> str:
    return f"remove it with: quarterdeck local down --purge --state-dir {root}"


@contextmanager
def _explained(root: Path) -> Iterator[None]:
    """Turn the operating system's refusals into a line that names the directory."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            check_space(root)
        raise StateUnusable(
            f"cannot use {root} for the cluster's state: {error.strerror or error}; "
            "choose another place with --state-dir"
        ) from None
