"""Real payload directories of OpenShift operators, as far as this cluster's kinds allow."""

import asyncio

import pytest
from tests.integration.operators.cluster_version.sync.engine import Engine
from tests.places import FIXTURES

from quarterdeck.api.kinds import KINDS
from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync import PayloadProgress, run_payload
from quarterdeck.payload.filters import included
from quarterdeck.payload.gates import enabled_gates
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.load import load_payload
from quarterdeck.payload.model import KnownRelease, Manifest
from quarterdeck.payload.observed import SELF_MANAGED, ObservedCluster

MONITORING = {"PrometheusRule", "ServiceMonitor"}
NAMESPACES = {"openshift-config", "openshift-config-managed"}
ELSEWHERE = {
    # Its definitions are of a version that servers no longer have.
    "payload-4.6": MONITORING
    | {"CredentialsRequest", "CustomResourceDefinition", "openshift-config"},
    "payload-4.7": MONITORING | NAMESPACES | {"CredentialsRequest", "SecurityContextConstraints"},
    "payload": MONITORING | NAMESPACES | {"CredentialsRequest", "SecurityContextConstraints"},
}
"""Kinds and namespaces that other payloads of the same product bring."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FIXTURES.is_dir(), reason="the real payloads are not part of the repository"
    ),
]


OURS = {f"{kind.plural}.{kind.group}" for kind in KINDS}
"""The definitions of the shared control plane, which other tests need as they are."""


def manifests(name: str) -> tuple[Manifest, ...]:
    """What counts in the payload; in the oldest, without annotations, all of it."""
    release = KnownRelease(version="4.22.7", image="example.test/release@sha256:1")
    payload = load_payload(FIXTURES / name, release=release, profile=SELF_MANAGED)
    gates = enabled_gates(payload, SELF_MANAGED, "Default")
    counted = included(payload.manifests, ObservedCluster(enabled_gates=gates))
    return tuple(one for one in counted or payload.manifests if not is_ours(one.object))


def is_ours(obj: Object) -> bool:
    """Whether the server would take it for one of our definitions; old versions it refuses."""
    kind = (obj["apiVersion"], obj["kind"])
    crd = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    return kind == crd and obj["metadata"]["name"] in OURS


def lacking(progress: PayloadProgress) -> set[str]:
    """The kinds and namespaces that are not here, where that is all that is wrong."""
    found = set()
    for fault in progress.faults:
        group_kind, _, name = fault.manifest.split(": ")[1].partition("/")
        if fault.reason == "KindUnknown":
            found.add(group_kind.partition(".")[0])
        else:
            assert fault.reason == "NamespaceNotFound", fault
            found.add(name.partition("/")[0])
    return found


@pytest.mark.usefixtures("tidy")
async def test_real_payloads_are_applied_as_far_as_their_kinds_are_here(engine: Engine) -> None:
    """One after the other, as a cluster gets them.

    Only what comes from elsewhere is a fault then, and only operators are waited for, which do not
    run here; and nothing more is written.
    """
    for name, elsewhere in ELSEWHERE.items():
        payload = manifests(name)
        engine.reports.clear()
        async with engine.cluster() as cluster:
            run = asyncio.create_task(
                run_payload(payload, Mode.INITIALIZING, cluster, engine.reports.append)
            )
            try:
                progress = await engine.until(is_settled)
            finally:
                run.cancel()
                await asyncio.gather(run, return_exceptions=True)
            assert lacking(progress) == elsewhere
            assert progress.done > len(payload) / 2
            before = engine.writes()
            again = await run_payload(payload, Mode.RECONCILING, cluster, engine.reports.append)
            assert lacking(again) == elsewhere
            assert engine.writes() == before


def is_settled(progress: PayloadProgress) -> bool:
    waited = {fault.reason for fault in progress.waiting}
    tried = progress.done + len(progress.waiting) + len(progress.faults) == progress.total
    return tried and waited <= {"ClusterOperatorNotAvailable"}
