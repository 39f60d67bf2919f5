"""A checker that signs in by a certificate in a file, as a static pod does."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.certificates import CertificateSpec, KeyPair, issue, load
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.operator_process import OwnOperators, StartOperator, own_account
from quarterdeck.testing.waiting import eventually

USER = "system:quarterdeck:staleness"
REQUESTS = "certificatesigningrequests"
SPEC = CertificateSpec(name="staleness", common_name=USER, client=True)
LIFETIME = "1h"


class Node:
    """The directory of a static pod on its node, and the requests of that pod."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self.plane = plane
        self.kubeconfig = directory / "kubeconfig"
        self.file = directory / "client.pem"
        self.pending = directory / "client.pem.pending"
        self.objects = ApiObjects(plane.requests(), "default")
        self._audited = plane.audit_log.stat().st_size

    def audited(self) -> str:
        """What the API server has logged of the requests since the test began."""
        with self.plane.audit_log.open() as log:
            log.seek(self._audited)
            return log.read()

    def use(self, age: timedelta, spec: CertificateSpec = SPEC) -> None:
        """Give it a certificate of a year that was issued so long ago."""
        pair = self.issued(datetime.now(UTC) - age, spec)
        beside = self.file.with_suffix(".new")
        beside.write_bytes(pair.certificate + pair.key)
        beside.chmod(0o600)
        beside.replace(self.file)

    def issued(self, when: datetime, spec: CertificateSpec = SPEC) -> KeyPair:
        """A certificate of the cluster's authority, as its signer would issue it."""
        return issue(spec, load(self.plane.layout.pki, "ca"), when)

    def requests(self) -> list[Object]:
        """The signing requests that the checker has made."""
        return [
            one
            for one in self.objects.list(REQUESTS)
            if one["spec"]["username"] == USER and one["metadata"]["name"].startswith("quarterdeck")
        ]

    def request(self) -> str:
        """Wait for its request; return the name."""
        made = eventually(lambda: self.requests() or None, "it asks for a certificate")
        assert len(made) == 1
        return str(made[0]["metadata"]["name"])

    def wait_event(self, name: str, reason: str) -> Object:
        """The event about a request."""

        def look() -> Object | None:
            found = [
                one
                for one in self.objects.list("events")
                if one["involvedObject"]["name"] == name and one["reason"] == reason
            ]
            assert len(found) <= 1
            return found[0] if found else None

        return eventually(look, f"the event {reason} on {name}")

    def wait_renewed(self, before: bytes) -> None:
        """Wait until the file has another certificate."""
        eventually(lambda: self.file.read_bytes() != before, "it has a new certificate")


@pytest.fixture
def node(control_plane: ControlPlane, crds: list[str], tmp_path: Path) -> Iterator[Node]:
    """A node whose checker has rights and a kubeconfig; its requests are gone after the test."""
    directory = tmp_path / "node"
    directory.mkdir(mode=0o700)
    config = yaml.safe_load(own_account(control_plane, "staleness").read_text())
    config["users"][0]["user"] = {"client-certificate": "client.pem", "client-key": "client.pem"}
    made = Node(control_plane, directory)
    made.kubeconfig.write_text(yaml.safe_dump(config))
    yield made
    control_plane.kubectl("delete", REQUESTS, "--all")


@pytest.fixture
def checker(control_plane: ControlPlane, node: Node, own_operators: OwnOperators) -> StartOperator:
    """Starts the checker of the node."""
    return own_operators(
        control_plane, "staleness", f"--renew-certificate={LIFETIME}", account=node.kubeconfig
    )


@pytest.fixture
def approver(control_plane: ControlPlane, node: Node, own_operators: OwnOperators) -> StartOperator:
    """Starts the certificate approver."""
    return own_operators(control_plane, "certificates")
