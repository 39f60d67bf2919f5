"""The kubeconfig files themselves: which there are, what is in them, and their merging.

The first file to name a cluster, user or context wins. Each entry remembers its file, because
paths inside it are relative to that file and an error names it.
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
    """Where a server is, and how its certificate is verified."""

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
    """Who we are."""

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


class Context(msgspec.Struct, rename="kebab"):
    """A user at a cluster."""

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
    context: Context = msgspec.field(default_factory=Context)


class _File(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


E = TypeVar("E")


class Entry(msgspec.Struct, Generic[E], frozen=True):
    """A cluster, user or context, and where it is written."""

    file: Path
    what: str
    value: E

    def error(self, why: str) -> KubeconfigError:
        """What is wrong with the entry, with where it is."""
        return KubeconfigError(f"{self.file}: {self.what}: {why}")

    def path(self, relative: str) -> Path:
        """A path that the entry names; relative ones start at the entry's file."""
        return self.file.parent / relative

    def decoded(self, field: str, data: str) -> str:
        """The PEM text in a `...-data` field."""
        try:
            # Line breaks come from `base64` itself, which wraps; other text beside the PEM blocks
            # is a comment in whatever encoding.
            return base64.b64decode("".join(data.split()), validate=True).decode(errors="replace")
        except (binascii.Error, ValueError) as error:
            raise self.error(f"{field} is not base64 of PEM text") from error

    def text(self, field: str, relative: str) -> str:
        """The content of a file that a field names."""
        path = self.path(relative)
        try:
            return path.read_bytes().decode(errors="replace")
        except OSError as error:
            raise self.error(f"{field} {path}: {error.strerror}") from error


class Merged(msgspec.Struct):
    """All entries of all files, by name."""

    clusters: dict[str, Entry[KubeconfigCluster]] = {}
    users: dict[str, Entry[KubeconfigUser]] = {}
    contexts: dict[str, Entry[Context]] = {}
    current: str = ""


def kubeconfig_files(path: str | Path | None, env: Mapping[str, str]) -> list[Path]:
    """The files to read; missing ones are left out only if KUBECONFIG names several."""
    if path is not None:
        return [Path(path)]
    if listed := [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]:
        present = [file for file in listed if file.exists()]
        return present or listed[:1]
    default = Path(env.get("HOME") or Path.home()) / ".kube" / "config"
    if not default.exists():
        raise KubeconfigError(
            f"no kubeconfig: KUBECONFIG is not set and {default} does not exist; give --kubeconfig"
        )
    return [default]


def read_and_merge(files: Sequence[Path]) -> Merged:
    """All entries of these files; of several, empty ones are left out."""
    read = [(file, _read(file)) for file in files]
    if all(content is None for _, content in read):
        raise KubeconfigError(f"{files[0]}: is empty")
    return _merge([(file, content) for file, content in read if content is not None])


def _read(file: Path) -> _File | None:
    # Here, because a process in a pod has no kubeconfig to read.
    import yaml

    try:
        parsed = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
    except OSError as error:
        raise KubeconfigError(f"{file}: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise KubeconfigError(f"{file}: not YAML{at}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    if parsed is None:
        return None
    try:
        return msgspec.convert(_without_nulls(parsed), _File)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"{file}: {_readable(error)}") from error


def _without_nulls(value: Any) -> Any:
    """The same without fields that are null, which mean what absent ones do."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        # An extension is not ours: an exec plugin gets it as it is.
        name: field if name == "extension" else _without_nulls(field)
        for name, field in value.items()
        if field is not None
    }


def _readable(error: msgspec.ValidationError) -> str:
    """`clusters[0].cluster.server: Expected `str`, got `int``, from msgspec's message."""
    why, _, at = str(error).partition(" - at `$")
    field = at.strip("`.")
    return f"{field}: {why}" if field else why


def _merge(files: Sequence[tuple[Path, _File]]) -> Merged:
    merged = Merged()
    for file, content in files:
        merged.current = merged.current or content.current_context
        for c in content.clusters or ():
            merged.clusters.setdefault(c.name, Entry(file, f"cluster {c.name!r}", c.cluster))
        for u in content.users or ():
            merged.users.setdefault(
                u.name, Entry(file, f"user {u.name!r}", u.user or KubeconfigUser())
            )
        for x in content.contexts or ():
            merged.contexts.setdefault(x.name, Entry(file, f"context {x.name!r}", x.context))
    return merged
