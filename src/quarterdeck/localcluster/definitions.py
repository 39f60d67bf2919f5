"""Finds Quarterdeck's CustomResourceDefinitions, and installs them into a cluster."""

import time
from pathlib import Path
from typing import Any

import yaml

import quarterdeck
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.errors import LocalClusterError

_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ESTABLISHED_TIMEOUT = 30.0
_POLL_PERIOD = 0.2


def definitions_directory() -> Path:
    """The directory `deploy/crds`: inside an installed package, or beside `src` in a clone."""
    package = Path(quarterdeck.__file__).parent
    installed = package / "deploy" / "crds"
    return installed if installed.is_dir() else package.parents[1] / "deploy" / "crds"


def load_definitions(directory: Path) -> list[dict[str, Any]]:
    """All definitions in the YAML files of a directory, in the order of the file names."""
    return [
        document
        for file in sorted(directory.glob("*.yaml"))
        for document in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader)
        if document
    ]


def install_definitions(requests: Requests, definitions: list[dict[str, Any]]) -> list[str]:
    """Apply definitions, wait until the API server serves them, and return their names."""
    names = [str(definition["metadata"]["name"]) for definition in definitions]
    with requests.connected():
        for definition in definitions:
            requests.apply(_COLLECTION, definition)
        _wait_served(requests, names)
    return names


def installed_definitions(requests: Requests) -> set[str]:
    """The names of all definitions that the API server has."""
    answer = requests.send("GET", _COLLECTION)
    if not answer.ok:
        raise LocalClusterError(f"the definitions cannot be listed: HTTP {answer.status}")
    return {str(item["metadata"]["name"]) for item in answer.json()["items"]}


def _wait_served(requests: Requests, waiting: list[str]) -> None:
    deadline = time.monotonic() + _ESTABLISHED_TIMEOUT
    while waiting := [name for name in waiting if not _is_served(requests, name)]:
        if time.monotonic() > deadline:
            raise LocalClusterError(
                f"the API server does not serve {waiting[0]} {_ESTABLISHED_TIMEOUT:.0f} s after it "
                f"was applied; see: quarterdeck local kubectl describe crd {waiting[0]}"
            )
        time.sleep(_POLL_PERIOD)


def install_own_definitions(requests: Requests) -> list[str]:
    """Install Quarterdeck's own definitions, and return their names."""
    return install_definitions(requests, load_definitions(definitions_directory()))


def _is_served(requests: Requests, name: str) -> bool:
    answer = requests.send("GET", f"{_COLLECTION}/{name}")
    found = answer.json() if answer.ok else {}
    # Right after its creation the conditions of a definition are null.
    conditions = (found.get("status") or {}).get("conditions") or []
    if not any((one["type"], one["status"]) == ("Established", "True") for one in conditions):
        return False
    # Established comes first; until the storage is ready, the server answers a list with 429.
    spec = found["spec"]
    version = spec["versions"][0]["name"]
    served = f"apis/{spec['group']}/{version}"
    path = f"/{served}/{spec['names']['plural']}?resourceVersion=0"
    return requests.send("GET", path).ok and _is_described(requests, served, spec["names"]["kind"])


def _is_described(requests: Requests, served: str, kind: str) -> bool:
    """Whether `kubectl explain` knows the kind, about a second after its storage is ready."""
    index = requests.send("GET", "/openapi/v3")
    if not index.ok or served not in index.json()["paths"]:
        return False
    described = requests.send("GET", f"/openapi/v3/{served}")
    return described.ok and f'"kind":"{kind}"'.encode() in described.body
