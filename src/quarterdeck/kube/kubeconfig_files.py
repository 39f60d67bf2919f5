"""Finds, reads and merges kubeconfig files.

The first file with a cluster, user or context wins. Each entry has its file, because paths in it
are relative to that file and errors name it.
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from quarterdeck.kube.errors import KubeconfigError


class KubeconfigCluster(msgspec.Struct, rename="kebab"):
    """The address of a server, and how its certificate is verified."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] = []


class EnvVar(msgspec.Struct):
    """A variable for an exec plugin."""

    name: str
    value: str


class Exec(msgspec.Struct, rename="camel"):
    """A program that gives credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class KubeconfigUser(msgspec.Struct, rename="kebab"):
    """The credentials of a user."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None


class KubeconfigContext(msgspec.Struct, rename="kebab"):
    """A cluster and a user."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: KubeconfigCluster = msgspec.field(default_factory=KubeconfigCluster)


class _NamedUser(msgspec.Struct):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: KubeconfigContext = msgspec.field(default_factory=KubeconfigContext)


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


E = TypeVar("E")


class KubeconfigEntry(msgspec.Struct, Generic[E], frozen=True):
    """A cluster, user or context, and its file."""

    file: Path
    what: str
    value: E

    def error(self, why: str) -> KubeconfigError:
        """An error about the entry, with its file and name."""
        return KubeconfigError(f"{self.file}: {self.what}: {why}")

    def path(self, relative: str) -> Path:
        """A path in the entry; a relative path starts at the directory of the entry's file."""
        return self.file.parent / relative

    def decoded(self, field: str, data: str) -> str:
        """The PEM text in a `...-data` field."""
        try:
            # `base64` wraps lines; text beside the PEM blocks is a comment in any encoding.
            return base64.b64decode("".join(data.split()), validate=True).decode(errors="replace")
        except (binascii.Error, ValueError) as error:
            raise self.error(f"{field} is not base64 of PEM text") from error

    def text(self, field: str, relative: str) -> str:
        """The content of the file that a field names."""
        path = self.path(relative)
        try:
            return path.read_bytes().decode(errors="replace")
        except OSError as error:
            raise self.error(f"{field} {path}: {error.strerror}") from error


class Merged(msgspec.Struct):
    """All entries of all files, by name."""

    clusters: dict[str, KubeconfigEntry[KubeconfigCluster]] = {}
    users: dict[str, KubeconfigEntry[KubeconfigUser]] = {}
    contexts: dict[str, KubeconfigEntry[KubeconfigContext]] = {}
    current: str = ""


def kubeconfig_files(path: str | Path | None, env: Mapping[str, str]) -> list[Path]:
    """The files to read; missing files are left out only if KUBECONFIG names several."""
    if path is not None:
        return [Path(path)]
    if listed := [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]:
        present = [file for file in listed if file.exists()]
        return present or listed[:1]
    default = Path(env.get("HOME") or Path.home()) / ".kube" / "config"
    if not default.exists():
        raise KubeconfigError(
            f"no kubeconfig: KUBECONFIG is not set and {default} does not exist; give --kubeconfig"
            " (`quarterdeck local status` shows that of a local cluster)"
        )
    return [default]


def read_and_merge(files: Sequence[Path]) -> Merged:
    """All entries of these files; empty files are ignored if another has content."""
    read = [(file, _read(file)) for file in files]
    if all(content is None for _, content in read):
        raise KubeconfigError(f"{files[0]}: is empty")
    return _merge([(file, content) for file, content in read if content is not None])


def _read(file: Path) -> _Kubeconfig | None:
    # Imported here, because a process in a pod reads no kubeconfig.
    import yaml

    try:
        parsed = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
    except OSError as error:
        raise KubeconfigError(
            f"kubeconfig {file}: {error.strerror}; name another with --kubeconfig or KUBECONFIG"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise KubeconfigError(f"{file}: not YAML{at}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    if parsed is None:
        return None
    try:
        return msgspec.convert(_without_nulls(parsed), _Kubeconfig)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"{file}: {_readable(error)}") from error


def _without_nulls(value: Any) -> Any:
    """The value without null fields, which mean the same as absent ones."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        # An exec plugin gets its extension unchanged.
        name: field if name == "extension" else _without_nulls(field)
        for name, field in value.items()
        if field is not None
    }


def _readable(error: msgspec.ValidationError) -> str:
    """`clusters[0].cluster.server: Expected `str`, got `int``, from msgspec's message."""
    why, _, at = str(error).partition(" - at `$")
    field = at.strip("`.")
    return f"{field}: {why}" if field else why


def _merge(files: Sequence[tuple[Path, _Kubeconfig]]) -> Merged:
    merged = Merged()
    for file, content in files:
        merged.current = merged.current or content.current_context
        for c in content.clusters or ():
            merged.clusters.setdefault(
                c.name, KubeconfigEntry(file, f"cluster {c.name!r}", c.cluster)
            )
        for u in content.users or ():
            merged.users.setdefault(
                u.name, KubeconfigEntry(file, f"user {u.name!r}", u.user or KubeconfigUser())
            )
        for x in content.contexts or ():
            merged.contexts.setdefault(
                x.name, KubeconfigEntry(file, f"context {x.name!r}", x.context)
            )
    return merged
