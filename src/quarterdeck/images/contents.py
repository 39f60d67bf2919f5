"""What an image holds, and how it is run. Pure.

Debian's packages bring more than is needed, so what is taken of them is listed: a shell or a
package manager is not left out by name, it is never taken in.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

from quarterdeck.oci.layers import Entry

SUITE = "bookworm"
PYTHON = "python3.11"
USER = 65532
"""The user that images run as; it owns nothing, and has no name that counts."""
OPERATOR_LABEL = "io.openshift.release.operator"
DIST_PACKAGES = "usr/lib/python3/dist-packages"
LIBRARY = f"usr/lib/{PYTHON}"
MANIFESTS = "manifests"
STATUS = "var/lib/dpkg/status.d"
"""The descriptions of the packages, where scanners look for them."""

_COMMON = (
    "python3.11-minimal",
    "libpython3.11-stdlib",
    "ca-certificates",
    "netbase",
    "tzdata",
)

ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",  # noqa: S108 - in the image
}
ENTRYPOINT = ("/usr/bin/quarterdeck",)


class ImageKind(Enum):
    """The images that there are."""

    OPERATORS = "operators"
    ROUTER = "router"

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages of the image."""
        return (*_COMMON, "haproxy", "rsyslog") if self is ImageKind.ROUTER else _COMMON

    @property
    def image_name(self) -> str:
        """The name of the image, as in `image-references`."""
        return "quarterdeck-router" if self is ImageKind.ROUTER else "quarterdeck"

    @property
    def description(self) -> str:
        """What the image is, in a sentence."""
        if self is ImageKind.ROUTER:
            return "Quarterdeck's router: HAProxy, rsyslog and the program that configures them"
        return "Quarterdeck: operators that configure, watch, upgrade and hand over operators"

    @property
    def has_manifests(self) -> bool:
        """Whether a release takes manifests from the image."""
        return self is ImageKind.OPERATORS


LAYERS = ("base", "dependencies", "application")
"""The layers of an image, lowest first: what changes least often is lowest."""

_TAKEN = re.compile(
    r"(?:"
    r"lib64(?:/.*)?"
    r"|(?:usr/)?lib/[a-z0-9_]+-linux-gnu(?:/.*)?"
    rf"|{re.escape(LIBRARY)}(?:/.*)?"
    r"|usr/lib/ssl/(?:cert\.pem|certs|openssl\.cnf)"
    rf"|usr/bin/{re.escape(PYTHON)}"
    r"|usr/sbin/(?:haproxy|rsyslogd)"
    r"|usr/share/zoneinfo(?:/.*)?"
    r"|etc/(?:ethertypes|protocols|rpc|services|mime\.types|ssl/openssl\.cnf)"
    rf"|etc/{re.escape(PYTHON)}/.*"
    r")\Z"
)
_LEFT = re.compile(
    rf"{re.escape(LIBRARY)}/(?:ensurepip|idlelib|lib2to3|pydoc_data|turtledemo|tkinter|distutils"
    r"|unittest|test)(?:/.*)?\Z"
    r"|(?:usr/)?lib/[^/]+-linux-gnu/(?:gconv|security|perl.*|libperl.*|audit)(?:/.*)?\Z"
    r"|.*\.(?:h|a|pl|pm|sh)\Z"
)
_NO_SOURCE = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""Files of an installed distribution that tell of the machine on which it was installed."""
_TOOLS = re.compile(
    r"(?:adduser|debconf|dpkg|init-system-helpers|libpam-.*|lsb-base|openssl|passwd|perl.*"
    r"|lib.*-perl|libperl.*|lib[a-z]+-common|libsem.*|libsepol.*|sysvinit-utils|tar|usrmerge)\Z"
)
_DOCUMENTS = PurePosixPath("usr/share/doc")
_EMPTY = ("dev", "proc", "sys", "run", "var/lib/haproxy")
_PASSWD = (
    f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n"
)
_GROUP = f"root:x:0:\nnonroot:x:{USER}:\n"
_LAUNCHER = f"""\
#!/usr/bin/{PYTHON} -Iu
import sys
from quarterdeck.cli.main import main
sys.exit(main())
"""


def layer_of(path: str) -> str | None:
    """The layer that a file of the prepared tree goes into; None if it is left out."""
    pure = PurePosixPath(path)
    if pure.is_relative_to(DIST_PACKAGES):
        below = pure.relative_to(DIST_PACKAGES).parts
        if below[:1] == ("bin",) or (len(below) == 2 and below[1] in _NO_SOURCE):
            return None
        own = below and re.fullmatch(r"quarterdeck(?:-[^-]+\.dist-info)?", below[0])
        return "application" if own else "dependencies"
    described = pure.name if pure.is_relative_to(STATUS) else _documented(pure)
    if described:
        return None if _TOOLS.match(described) else "base"
    return "base" if _TAKEN.match(path) and not _LEFT.match(path) else None


def _documented(path: PurePosixPath) -> str:
    """The package of a copyright file; empty for every other file."""
    directory, name = path.parent, path.name
    return directory.name if name == "copyright" and directory.parent == _DOCUMENTS else ""


def split(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The files of the prepared tree by layer; modes allow nobody to write, or to become another.

    Directories are left to the layers' writer, which makes those above each file.
    """
    layers: dict[str, list[Entry]] = {name: [] for name in LAYERS}
    for entry in entries:
        name = layer_of(entry.path)
        if name is None or (entry.content is None and entry.link is None):
            continue
        mode = 0o755 if entry.mode & 0o111 else 0o644
        layers[name].append(
            Entry(path=entry.path, mode=mode, content=entry.content, link=entry.link)
        )
    return layers


def base_files(certificates: Mapping[str, bytes]) -> list[Entry]:
    """The files of the base layer that no package has: users, directories, trusted certificates.

    The certificates are one file, as Debian's scripts would write it.
    """
    bundle = b"".join(
        text if text.endswith(b"\n") else text + b"\n" for _, text in sorted(certificates.items())
    )
    return [
        Entry(path="etc/passwd", content=_PASSWD.encode()),
        Entry(path="etc/group", content=_GROUP.encode()),
        Entry(path="etc/ssl/certs/ca-certificates.crt", content=bundle),
        Entry(path="tmp", mode=0o1777),
        *(Entry(path=path, mode=0o755) for path in _EMPTY),
    ]


def application_files(kind: ImageKind, payload: Mapping[str, Path]) -> list[Entry]:
    """The files of the application's layer beside its package: the program and its manifests."""
    launcher = Entry(path=ENTRYPOINT[0].lstrip("/"), mode=0o755, content=_LAUNCHER.encode())
    if not kind.has_manifests:
        return [launcher]
    return [launcher, *(Entry(path=f"{MANIFESTS}/{n}", content=p) for n, p in payload.items())]


def labels(kind: ImageKind, version: str) -> dict[str, str]:
    """The labels of an image."""
    standard = {
        "title": kind.image_name,
        "description": kind.description,
        "version": version,
        "licenses": "Apache-2.0",
        "vendor": "Quarterdeck",
    }
    made = {f"org.opencontainers.image.{name}": value for name, value in standard.items()}
    return made | ({OPERATOR_LABEL: "true"} if kind.has_manifests else {})


def config(kind: ImageKind, version: str, architecture: str, created: str) -> dict[str, Any]:
    """The config of an image, without its layers."""
    return {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "Entrypoint": list(ENTRYPOINT),
            "WorkingDir": "/",
            "Labels": labels(kind, version),
        },
    }
