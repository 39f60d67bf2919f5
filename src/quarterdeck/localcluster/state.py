"""The state directory of one local cluster: its files, its checks, and its lock.

It holds keys and etcd's data, so only its owner may read it (0700). It records its format and its
Kubernetes version, and cannot be used with another one. Only the supervisor that holds the lock
uses it.
"""

import errno
import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries import KUBERNETES_VERSION
from quarterdeck.localcluster.errors import AlreadyRunning, StateUnusable
from quarterdeck.private_file import write_private

STATE_FORMAT = 1

ENOUGH_DISK = 256 * 1024 * 1024
"""With less than this many bytes a start fails: etcd alone preallocates two segments of 64 MB."""

DEFAULT_CLUSTER = "local"
"""The name of the cluster that commands mean if they name none."""


class StateVersion(msgspec.Struct, frozen=True):
    """The format and Kubernetes version of a state directory."""

    format: int
    kubernetes: str


THIS_VERSION = StateVersion(format=STATE_FORMAT, kubernetes=KUBERNETES_VERSION)


class Layout(msgspec.Struct, frozen=True):
    """The paths in a state directory."""

    root: Path

    @property
    def version(self) -> Path:
        """The format and Kubernetes version of this directory."""
        return self.root / "version.json"

    @property
    def ports(self) -> Path:
        """The ports of this cluster."""
        return self.root / "ports.json"

    @property
    def operator_ports(self) -> Path:
        """The ports of operators' objects on this machine."""
        return self.root / "operator-ports.json"

    @property
    def lock(self) -> Path:
        """The file that the supervisor locks while it runs."""
        return self.root / "lock"

    @property
    def status(self) -> Path:
        """The last status that the supervisor wrote."""
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
        """The kubeconfigs of the components and of other users."""
        return self.root / "kubeconfigs"

    @property
    def etcd_data(self) -> Path:
        """The data of etcd."""
        return self.root / "etcd"

    @property
    def etcd_never_ready(self) -> Path:
        """A file that exists until etcd has been ready once."""
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
        """A link to the user's own directory of static pods, if there is one."""
        return self.root / "own-manifests"

    def credentials_of(self, pod: str) -> Path:
        """The directory with a static pod's kubeconfig, which the pod mounts."""
        return self.root / "credentials" / pod

    @property
    def logs(self) -> Path:
        """One log file per component, and the supervisor's."""
        return self.root / "logs"

    @property
    def audit_log(self) -> Path:
        """The audit log, one line per request, if auditing is on."""
        return self.root / "logs" / "audit.log"

    @property
    def audit_policy(self) -> Path:
        """The audit policy of the API server."""
        return self.root / "audit-policy.yaml"

    @property
    def kubectl_cache(self) -> Path:
        """The cache of kubectl, kept out of the user's home directory."""
        return self.root / "kubectl-cache"

    def log_of(self, component: str) -> Path:
        """The log file of a component."""
        return self.logs / f"{component}.log"

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of a component or a user, by a name that is safe in a path."""
        return self.kubeconfigs / f"{user.replace('/', '_').replace(':', '_')}.kubeconfig"


def prepare(layout: Layout) -> None:
    """Create the state directory, or raise why it cannot be used.

    An existing directory must have this version and this owner.
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
    """Refuse a directory of another format or Kubernetes version."""
    try:
        found = msgspec.json.decode(layout.version.read_bytes(), type=StateVersion)
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


def discard_unready_data(layout: Layout) -> None:
    """Remove etcd's data if etcd was never ready with it; call this before etcd starts.

    An etcd that is killed between the creation of its log and the record of its membership never
    elects a leader again. Measured: 3 of 120 random kills in its first quarter second.
    """
    if layout.etcd_never_ready.exists():
        shutil.rmtree(layout.etcd_data, ignore_errors=True)
    elif not layout.etcd_data.exists():
        layout.etcd_never_ready.touch()


def keep_data(layout: Layout) -> None:
    """Keep etcd's data from now on; call this when etcd is ready."""
    layout.etcd_never_ready.unlink(missing_ok=True)


class Lock:
    """An exclusive lock of a state directory; the kernel releases it when this process ends."""

    def __init__(self, layout: Layout) -> None:
        self._file = layout.lock.open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise AlreadyRunning(f"the cluster in {layout.root} runs already") from None

    def release(self) -> None:
        """Release the lock."""
        self._file.close()


def is_locked(layout: Layout) -> bool:
    """Whether a supervisor holds the lock of this state directory."""
    try:
        with layout.lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True
    return False


def check_owner(layout: Layout) -> None:
    """Refuse a directory of another user; a missing one is fine."""
    try:
        owner, user = layout.root.stat().st_uid, os.geteuid()
    except OSError:  # The next use of the directory raises a clear error.
        return
    if owner != user:
        raise StateUnusable(
            f"{layout.root} belongs to user id {owner}, you are {user}; "
            "run as that user, or choose another place with --state-dir"
        )


def check_space(root: Path) -> None:
    """Refuse a disk without enough space for etcd."""
    free = shutil.disk_usage(root).free
    if free < ENOUGH_DISK:
        raise StateUnusable(
            f"the disk of {root} is full: {free // 2**20} MB free, {ENOUGH_DISK // 2**20} MB "
            "are needed; free some, or choose another place with --state-dir"
        )


def selecting_options(root: Path, env: Mapping[str, str]) -> str:
    """The options of `quarterdeck local` that select the cluster in this directory, for a shell."""
    base = env.get("XDG_STATE_HOME") or f"{env.get('HOME', '')}/.local/state"
    if root.parent != Path(base) / "quarterdeck":
        return f"--state-dir {shlex.quote(str(root))}"
    return "" if root.name == DEFAULT_CLUSTER else f"--name {root.name}"


def _remove_remedy(root: Path) -> str:
    return f"remove it with: quarterdeck local down --purge --state-dir {root}"


@contextmanager
def _explained(root: Path) -> Iterator[None]:
    """Turn an OSError into an error that names the directory and a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            check_space(root)
        raise StateUnusable(
            f"cannot use {root} for the cluster's state: {error.strerror or error}; "
            "choose another place with --state-dir"
        ) from None
