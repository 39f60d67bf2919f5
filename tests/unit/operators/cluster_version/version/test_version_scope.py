"""What counts on a cluster, and which capabilities an update brings along."""

import msgspec
import pytest
from tests.unit.operators.cluster_version.version.builders import START

from quarterdeck.api.config_v1 import (
    CapabilitiesSpec,
    CapabilitiesStatus,
    ClusterVersion,
    ClusterVersionSpec,
    ComponentOverride,
)
from quarterdeck.api.meta import ObjectMeta
from quarterdeck.operators.cluster_version.version.capabilities import not_asked_for
from quarterdeck.operators.cluster_version.version.scope import Scope, current_scope
from quarterdeck.payload.model import KnownRelease, Manifest, Payload
from quarterdeck.payload.observed import SELF_MANAGED

NOTHING = CapabilitiesSpec(baseline_capability_set="None")


def manifest(name: str, capability: str = "", profile: str = SELF_MANAGED) -> Manifest:
    annotations = {f"include.release.openshift.io/{profile}": "true"}
    if capability:
        annotations["capability.openshift.io/name"] = capability
    metadata = {"name": name, "namespace": "ns", "annotations": annotations}
    return Manifest(
        file=f"{name}.yaml",
        document=1,
        line=1,
        run_level=10,
        component="x",
        object={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata},
    )


def payload(*manifests: Manifest) -> Payload:
    return Payload(release=KnownRelease(version="1.0.0"), manifests=manifests)


def scope(spec: CapabilitiesSpec | None = NOTHING, **more: object) -> Scope:
    version = ClusterVersion(
        metadata=ObjectMeta(name="version", creation_timestamp=START),
        spec=msgspec.structs.replace(ClusterVersionSpec(cluster_id="x", capabilities=spec), **more),
    )
    return current_scope(version, None, SELF_MANAGED)


@pytest.mark.parametrize(
    ("before", "after", "enabled"),
    [
        pytest.param(manifest("a"), manifest("a", "Console"), ["Console"], id="made optional"),
        pytest.param(manifest("a"), manifest("a"), [], id="as it was"),
        pytest.param(manifest("b"), manifest("a", "Console"), [], id="another object"),
        pytest.param(
            manifest("a", "Ingress"), manifest("a", "Console"), [], id="it was left out before"
        ),
        pytest.param(
            manifest("a"),
            manifest("a", "Console+Ingress"),
            ["Console", "Ingress"],
            id="all that it needs",
        ),
        pytest.param(
            manifest("a"), manifest("a", "Consul"), [], id="not known, so it never counts"
        ),
        pytest.param(
            manifest("a"), manifest("a", "Console", "hypershift"), [], id="no more for this profile"
        ),
    ],
)
def test_an_update_enables_what_it_makes_optional_and_the_cluster_runs(
    before: Manifest, after: Manifest, enabled: list[str]
) -> None:
    updated = scope().after_update([payload(before)], payload(after))
    assert list(updated.capabilities.enabled_capabilities) == enabled
    assert list(not_asked_for(NOTHING, updated.capabilities)) == enabled


def test_of_an_update_that_was_cut_short_both_releases_run() -> None:
    running = [payload(manifest("a")), payload(manifest("b"))]
    coming = payload(manifest("a", "Console"), manifest("b", "Ingress"))
    updated = scope().after_update(running, coming)
    assert updated.capabilities.enabled_capabilities == ("Console", "Ingress")


def test_what_the_administrator_has_taken_over_brings_no_capability() -> None:
    mine = ComponentOverride(kind="ConfigMap", group="", namespace="ns", name="a", unmanaged=True)
    overridden = scope(overrides=(mine,))
    updated = overridden.after_update([payload(manifest("a"))], payload(manifest("a", "Console")))
    assert updated.capabilities.enabled_capabilities == ()


def test_what_is_asked_for_is_not_implied() -> None:
    console = CapabilitiesSpec(
        baseline_capability_set="None", additional_enabled_capabilities=("Console",)
    )
    updated = scope(console).after_update(
        [payload(manifest("a"))], payload(manifest("a", "Console"))
    )
    assert updated.capabilities.enabled_capabilities == ("Console",)
    assert not_asked_for(console, updated.capabilities) == ()
    had = CapabilitiesStatus(enabled_capabilities=("Console", "Ingress"))
    assert not_asked_for(console, had) == ("Ingress",)
