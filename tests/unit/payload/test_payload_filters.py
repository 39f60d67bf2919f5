"""Each of the nine filters, each of its reasons, and that all of them are kept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.config_v1 import ComponentOverride
from quarterdeck.feature_gates import FEATURE_SETS
from quarterdeck.payload.filters import (
    FILTERS,
    excluded_by,
    filter_results,
    included,
)
from quarterdeck.payload.model import Manifest
from quarterdeck.payload.observed import CAPABILITIES, ObservedCluster

PROFILE = "include.release.openshift.io/self-managed-high-availability"
INCLUDED = {PROFILE: "true"}
SET = "release.openshift.io/feature-set"
GATE = "release.openshift.io/feature-gate"
MAJOR = "release.openshift.io/major-version"
CAPABILITY = "capability.openshift.io/name"


def manifest(
    annotations: dict[str, Any] | None = None,
    *,
    api_version: str = "apps/v1",
    kind: str = "Deployment",
    namespace: str | None = "ns",
) -> Manifest:
    metadata: dict[str, Any] = {"name": "name"}
    if namespace:
        metadata["namespace"] = namespace
    if annotations is not None:
        metadata["annotations"] = annotations
    return Manifest(
        file="0000_10_part_1.yaml",
        document=1,
        line=1,
        run_level=10,
        component="part",
        object={"apiVersion": api_version, "kind": kind, "metadata": metadata},
    )


def crd(annotations: dict[str, Any]) -> Manifest:
    return manifest(
        INCLUDED | annotations,
        api_version="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        namespace=None,
    )


def with_override(**fields: Any) -> ObservedCluster:
    entry = {"group": "apps", "kind": "Deployment", "namespace": "ns", "name": "name"}
    override = ComponentOverride(**(entry | {"unmanaged": True} | fields))
    return ObservedCluster(overrides=(override,))


@pytest.mark.parametrize(
    ("found", "observed", "number", "reason"),
    [
        pytest.param(
            manifest(), ObservedCluster(), 1, "there are no annotations", id="1: none at all"
        ),
        pytest.param(
            manifest({}), ObservedCluster(), 1, "there are no annotations", id="1: an empty map"
        ),
        pytest.param(
            manifest(INCLUDED | {"exclude.release.openshift.io/hosted": "true"}),
            ObservedCluster(cluster_id="hosted"),
            2,
            'exclude.release.openshift.io/hosted is "true"',
            id="2: the cluster is excluded",
        ),
        pytest.param(
            manifest(
                INCLUDED | {"exclude.release.openshift.io/self-managed-high-availability": "true"}
            ),
            ObservedCluster(),
            2,
            'exclude.release.openshift.io/self-managed-high-availability is "true"',
            id="2: the profile is excluded",
        ),
        pytest.param(
            manifest(INCLUDED | {SET: "Default", GATE: "X"}),
            ObservedCluster(enabled_gates=frozenset("X")),
            3,
            f"both {SET} and {GATE} are set",
            id="3: by set and by gate",
        ),
        pytest.param(
            manifest(INCLUDED | {SET: "TechPreviewNoUpgrade,OKD"}),
            ObservedCluster(),
            4,
            f"Default is not in {SET}: TechPreviewNoUpgrade,OKD",
            id="4: another feature set",
        ),
        pytest.param(
            manifest(INCLUDED | {SET: ""}),
            ObservedCluster(feature_set="OKD"),
            4,
            f"OKD is not in {SET}: ",
            id="4: an empty list is the Default set",
        ),
        pytest.param(
            manifest(INCLUDED | {SET: "Default,Latest"}),
            ObservedCluster(),
            4,
            f"{SET} has the unknown 'Latest'",
            id="4: an unknown feature set, even beside the running one",
        ),
        pytest.param(
            manifest(INCLUDED | {GATE: "X"}),
            ObservedCluster(),
            5,
            f"X is off, against {GATE}: X",
            id="5: a gate is off",
        ),
        pytest.param(
            manifest(INCLUDED | {GATE: "X, -Y , Z"}),
            ObservedCluster(enabled_gates=frozenset("XY")),
            5,
            f"Y is on and Z is off, against {GATE}: X, -Y , Z",
            id="5: all must hold, blanks or not",
        ),
        pytest.param(
            crd({MAJOR: "5"}),
            ObservedCluster(major_version=4),
            6,
            f"the release is of major version 4, against {MAJOR}: 5",
            id="6: another major version",
        ),
        pytest.param(
            crd({MAJOR: "-4"}),
            ObservedCluster(major_version=4),
            6,
            f"the release is of major version 4, against {MAJOR}: -4",
            id="6: this major version is refused",
        ),
        pytest.param(
            crd({MAJOR: "4,five"}),
            ObservedCluster(major_version=4),
            6,
            f"{MAJOR} has 'five', which is no number",
            id="6: no number",
        ),
        pytest.param(
            manifest({"other": "x"}),
            ObservedCluster(),
            7,
            f"{PROFILE} is not set",
            id="7: the profile is not included",
        ),
        pytest.param(
            manifest({PROFILE: "True"}),
            ObservedCluster(),
            7,
            f"{PROFILE} is 'True', not \"true\"",
            id="7: not exactly true",
        ),
        pytest.param(
            manifest({PROFILE: True}),
            ObservedCluster(),
            7,
            f'{PROFILE} is True, not "true"',
            id="7: a boolean is not the text",
        ),
        pytest.param(
            manifest(INCLUDED | {CAPABILITY: "Console+Telepathy"}),
            ObservedCluster(enabled_capabilities=frozenset()),
            8,
            f"{CAPABILITY} has the unknown 'Telepathy'",
            id="8: an unknown capability comes before a disabled one",
        ),
        pytest.param(
            manifest(INCLUDED | {CAPABILITY: "MachineAPI+CloudCredential"}),
            ObservedCluster(enabled_capabilities=CAPABILITIES - {"CloudCredential"}),
            8,
            "the capability 'CloudCredential' is disabled",
            id="8: all capabilities must be enabled",
        ),
        pytest.param(
            manifest(INCLUDED),
            with_override(),
            9,
            "an entry of ClusterVersion.spec.overrides says unmanaged",
            id="9: an override",
        ),
    ],
)
def test_a_filter_excludes(
    found: Manifest, observed: ObservedCluster, number: int, reason: str
) -> None:
    """The filter is the first to exclude, with its number and its reason."""
    verdict = excluded_by(found, observed)
    assert verdict is not None
    assert (verdict.number, verdict.reason) == (number, reason)
    assert verdict.filter == FILTERS[number - 1][0]


@pytest.mark.parametrize(
    ("found", "observed"),
    [
        pytest.param(manifest(INCLUDED), ObservedCluster(), id="the profile is enough"),
        pytest.param(
            manifest(INCLUDED | {"exclude.release.openshift.io/hosted": "true"}),
            ObservedCluster(cluster_id="other"),
            id="2: another cluster is excluded",
        ),
        pytest.param(
            manifest(INCLUDED | {"exclude.release.openshift.io/hosted": "false"}),
            ObservedCluster(cluster_id="hosted"),
            id="2: excluded by false",
        ),
        pytest.param(
            manifest(INCLUDED | {"exclude.release.openshift.io/": "true"}),
            ObservedCluster(),
            id="2: an exclude without a name, and no cluster id",
        ),
        pytest.param(
            manifest(INCLUDED | {SET: "OKD, Default"}),
            ObservedCluster(),
            id="4: listed, with a blank",
        ),
        pytest.param(
            manifest(INCLUDED | {SET: ""}),
            ObservedCluster(feature_set=""),
            id="4: empty is Default",
        ),
        pytest.param(
            manifest(INCLUDED | {GATE: " X ,-Y"}),
            ObservedCluster(enabled_gates=frozenset("X")),
            id="5: all gates hold",
        ),
        pytest.param(crd({MAJOR: "4, 5"}), ObservedCluster(major_version=5), id="6: one of a list"),
        pytest.param(
            crd({MAJOR: "-3"}), ObservedCluster(major_version=4), id="6: another is refused"
        ),
        pytest.param(crd({MAJOR: "5"}), ObservedCluster(), id="6: a release without a version"),
        pytest.param(
            manifest(INCLUDED | {MAJOR: "5"}),
            ObservedCluster(major_version=4),
            id="6: not on other kinds",
        ),
        pytest.param(
            manifest(INCLUDED | {CAPABILITY: "MachineAPI + CloudCredential"}),
            ObservedCluster(),
            id="8: all enabled",
        ),
        pytest.param(manifest(INCLUDED), with_override(unmanaged=False), id="9: managed"),
        pytest.param(manifest(INCLUDED), with_override(group=""), id="9: another group"),
        pytest.param(manifest(INCLUDED), with_override(kind="DaemonSet"), id="9: another kind"),
        pytest.param(manifest(INCLUDED), with_override(namespace="x"), id="9: another namespace"),
        pytest.param(manifest(INCLUDED), with_override(name="x"), id="9: another name"),
    ],
)
def test_no_filter_excludes(found: Manifest, observed: ObservedCluster) -> None:
    assert excluded_by(found, observed) is None


def test_every_reason_is_kept() -> None:
    """All nine but the first can apply to one manifest, and all are told."""
    found = crd(
        {
            PROFILE: "no",
            "exclude.release.openshift.io/id": "true",
            SET: "OKD",
            GATE: "X",
            MAJOR: "5",
            CAPABILITY: "Build",
        }
    )
    identity = found.identity
    observed = ObservedCluster(
        cluster_id="id",
        major_version=4,
        enabled_capabilities=frozenset(),
        overrides=(
            ComponentOverride(
                group=identity.group,
                kind=identity.kind,
                namespace="",
                name=identity.name,
                unmanaged=True,
            ),
        ),
    )
    applied = [verdict.number for verdict in filter_results(found, observed) if verdict.reason]
    assert applied == [2, 3, 4, 5, 6, 7, 8, 9]


anything = st.sampled_from(
    ["true", "false", "", "X", "-X", "Default", "OKD,", "4", "Build+X", True, 3]
)
annotation_maps = st.none() | st.dictionaries(
    st.sampled_from(
        [PROFILE, SET, GATE, MAJOR, CAPABILITY, "exclude.release.openshift.io/id", "other"]
    ),
    anything | st.text(max_size=5),
)


@given(
    annotations=annotation_maps,
    feature_set=st.sampled_from(FEATURE_SETS),
    gates=st.frozensets(st.sampled_from("XY")),
)
def test_the_first_reason_decides_and_none_means_included(
    annotations: dict[str, Any] | None, feature_set: str, gates: frozenset[str]
) -> None:
    observed = ObservedCluster(
        feature_set=feature_set, enabled_gates=gates, cluster_id="id", major_version=4
    )
    found = manifest(annotations)
    told = filter_results(found, observed)
    assert [verdict.number for verdict in told] == list(range(1, 10))
    first = next((verdict for verdict in told if verdict.reason is not None), None)
    assert excluded_by(found, observed) == first
    assert included([found], observed) == ((found,) if first is None else ())


def test_an_override_of_an_object_without_a_namespace_ignores_a_stray_one() -> None:
    """The field is required, and people write what they like into it."""
    observed = with_override(group="apiextensions.k8s.io", kind="CustomResourceDefinition")
    verdict = excluded_by(crd({}), observed)
    assert verdict is not None
    assert verdict.filter == "override"
    assert excluded_by(manifest(INCLUDED), with_override(namespace="other")) is None
