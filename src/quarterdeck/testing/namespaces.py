"""Namespaces for tests: named after the test, ready for pods, deleted without waiting for pods."""

import json
import re
import secrets
import time

from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.testing.cluster_scope import Removal

_COLLECTION = "/api/v1/namespaces"
_LONGEST_STEM = 40
_READY_TIMEOUT = 60.0


def name_for(test: str) -> str:
    """A unique name for a namespace, from the test's name."""
    stem = re.sub(r"[^a-z0-9]+", "-", test.removeprefix("test_").lower()).strip("-")
    return f"{stem[:_LONGEST_STEM].strip('-') or 'test'}-{secrets.token_hex(3)}"


def create_namespace(requests: Requests, name: str) -> None:
    """Create a namespace, and wait for its default ServiceAccount, which pods need."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    answer = requests.send("POST", _COLLECTION, json.dumps(body).encode())
    if not answer.ok:
        raise RuntimeError(f"namespace {name}: {answer.body.decode(errors='replace')}")
    deadline = time.monotonic() + _READY_TIMEOUT
    while not requests.send("GET", f"{_COLLECTION}/{name}/serviceaccounts/default").ok:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"namespace {name} has no default ServiceAccount after {_READY_TIMEOUT:.0f} s; "
                "is the controller manager running?"
            )
        time.sleep(0.02)


def delete_namespace(cluster: ClusterAccess, name: str) -> None:
    """Delete the namespace; if it has pods, which take a while to end, request its deletion.

    Do nothing if the test has stopped the cluster.
    """
    try:
        removal = Removal(cluster)
        with removal.requests.connected():
            if removal.has_workloads(name):
                removal.requests.send("DELETE", f"{_COLLECTION}/{name}")
            else:
                removal.remove_without_pods(name)
    except OSError:
        return
