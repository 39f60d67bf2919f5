"""What is installed, and what speaks against it."""

from typing import Any

import pytest
import yaml
from tests.places import DEPLOY

from quarterdeck.api.meta import Object
from quarterdeck.delivery.registry import installed
from quarterdeck.install.facts import ClusterFacts, identity
from quarterdeck.install.plan import InstallationPlan, plan, wanted_image
from quarterdeck.install.preflight import InstallOptions

OPERATORS = list(installed().operators.values())
DIGEST = "sha256:" + "a" * 64
NAMED = "quarterdeck:0.1.0"
"""The image that the delivered files name."""
IMAGE = f"registry.example.test/quarterdeck@{DIGEST}"


def definition(name: str, *managers: str, **annotations: str) -> Object:
    fields = [{"manager": manager} for manager in managers]
    return {"metadata": {"name": name, "managedFields": fields, "annotations": annotations}}


def facts(*definitions: Object, **more: Any) -> ClusterFacts:
    found = {one["metadata"]["name"]: one for one in definitions}
    return ClusterFacts(**{"server_version": "v1.36.4", "definitions": found} | more)


def planned(known: ClusterFacts, **options: Any) -> InstallationPlan:
    given = InstallOptions(**{"image": IMAGE} | options)
    return plan(known, given, OPERATORS, "0.1.0")


def messages(found: InstallationPlan, level: str) -> str:
    return "\n".join(one.message for one in found.findings if one.level == level)


def names(found: InstallationPlan, kind: str = "Deployment") -> list[str]:
    every = [obj for applied in found.steps for obj in applied.step.objects]
    return [obj["metadata"]["name"] for obj in every if obj["kind"] == kind]


def test_a_plain_cluster_gets_the_operator_of_releases_and_the_checker() -> None:
    found = planned(facts())
    assert (found.way, found.refused, found.capabilities) == ("release", False, None)
    assert names(found) == ["cluster-version-operator", "staleness-checker"]
    owners = {applied.step.title: applied.manager for applied in found.steps}
    # Its own field manager, so that it owns these fields when it applies itself.
    assert owners["The cluster version operator"] == "quarterdeck-cluster-version"
    assert owners["The staleness checker"] == "quarterdeck-install"
    (container,) = [
        container
        for applied in found.steps
        for obj in applied.step.objects
        if obj["metadata"]["name"] == "cluster-version-operator" and obj["kind"] == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
    ]
    assert container["image"] == IMAGE
    assert {"name": "RELEASE_IMAGE", "value": IMAGE} in container["env"]
    assert not [arg for arg in container["args"] if "{{" in arg]


def test_the_plain_yaml_has_what_the_command_applies() -> None:
    """Kustomize and the chart are compared to the plain YAML by tests/integration/install."""
    plain = (DEPLOY / "install" / "quarterdeck.yaml").read_text()
    objects = {identity(one): one for one in yaml.safe_load_all(plain.replace(NAMED, IMAGE))}
    assert {identity(one): one for one in planned(facts()).objects} == objects


def test_operators_that_are_left_out_have_no_capability() -> None:
    found = planned(facts(), operators=("ingress", "sample"))
    assert found.capabilities == ("Ingress", "openshift-samples")
    assert names(found) == ["cluster-version-operator"]


def test_an_operator_whose_kind_is_anothers_is_off_and_said_to_be() -> None:
    known = facts(definition("ingresscontrollers.operator.openshift.io", "helm"))
    found = planned(known)
    assert found.way == "release"
    assert found.capabilities is not None
    assert "Ingress" not in found.capabilities
    assert "The ingress operator is switched off" in messages(found, "warning")
    assert "(helm)" in messages(found, "warning")


def test_where_another_version_operator_is_in_charge_nothing_of_its_is_touched() -> None:
    name = "clusterversions.config.openshift.io"
    known = facts(
        definition(name, "cluster-version-operator"),
        definition("clusteroperators.config.openshift.io", "cluster-version-operator"),
        reporting=frozenset({"ingress", "machine-api", "baremetal", "operator-lifecycle-manager"}),
    )
    found = planned(known)
    assert found.way == "direct"
    assert "cluster-version-operator" not in names(found)
    assert sorted(names(found)) == ["sample-operator", "staleness-checker"]
    assert not {name, "clusteroperators.config.openshift.io"} & set(
        names(found, "CustomResourceDefinition")
    )


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(definition("clusterversions.config.openshift.io", "quarterdeck-x"), id="ours"),
        pytest.param(
            definition(
                "clusterversions.config.openshift.io", "helm", **{"quarterdeck.dev/owner": "yes"}
            ),
            id="installed by Helm",
        ),
    ],
)
def test_a_definition_of_ours_is_applied_again(live: Object) -> None:
    found = planned(facts(live))
    assert found.way == "release"
    assert live["metadata"]["name"] in names(found, "CustomResourceDefinition")


@pytest.mark.parametrize(
    ("known", "options", "error"),
    [
        pytest.param(facts(server_version="v1.30.9"), {}, "update it to 1.31", id="an old server"),
        pytest.param(
            facts(applier=definition("cvo", "quarterdeck-cluster-version")),
            {"all_in_one": True},
            "--all-in-one: the cluster version operator is installed",
            id="all in one beside a release",
        ),
        pytest.param(
            facts(all_in_one=definition("quarterdeck", "quarterdeck-install")),
            {},
            "all operators run in one Deployment here",
            id="a release beside all in one",
        ),
        pytest.param(
            facts(
                definition("clusterversions.config.openshift.io", "cluster-version-operator"),
                cluster_version={"status": {"history": [{"version": "4.20.0", "image": "o/o:1"}]}},
                applier=definition("cluster-version-operator", "cluster-version-operator"),
            ),
            {"image": ""},
            "no image: name",
            id="the image of OpenShift's release is not ours",
        ),
        pytest.param(facts(), {"image": ""}, "no image: name", id="no image"),
        pytest.param(
            facts(), {"operators": ("x\x1b[2J",)}, "'x\\x1b[2J': there is no such", id="a name"
        ),
    ],
)
def test_what_speaks_against_it_leaves_nothing_to_apply(
    known: ClusterFacts, options: Any, error: str
) -> None:
    found = planned(known, **options)
    assert found.refused
    assert error in messages(found, "error")
    assert found.steps == ()


def test_an_unknown_server_version_is_a_warning() -> None:
    found = planned(facts(server_version="main"))
    assert not found.refused
    assert "not known whether that will do" in messages(found, "warning")


def test_a_release_that_is_there_stays() -> None:
    version = {"status": {"history": [{"version": "1.0.0", "image": IMAGE}]}}
    known = facts(cluster_version=version, applier=definition("cvo", "quarterdeck-cluster-version"))
    found = planned(known)
    assert "cluster-version-operator" not in names(found)
    # A program that is older than the release would apply older definitions and rights.
    steps = {applied.step.title: applied.step.create_only for applied in found.steps}
    assert steps["rights"]
    assert steps["CRDs"]
    assert "the release 1.0.0, which stays" in messages(found, "info")
    other = planned(known, image="r.test/quarterdeck@sha256:" + "b" * 64)
    assert "quarterdeck update --image r.test" in messages(other, "warning")
    assert (other.image, IMAGE in str(other.steps)) == (IMAGE, True)
    assert "r.test" not in str(other.steps)
    assert not planned(known, image="").refused


def test_on_openshift_nobody_is_told_to_update_with_our_release() -> None:
    known = facts(
        definition("clusterversions.config.openshift.io", "cluster-version-operator"),
        cluster_version={"status": {"history": [{"version": "4.20.0", "image": "o/o:1"}]}},
        applier=definition("cluster-version-operator", "cluster-version-operator"),
    )
    found = planned(known, all_in_one=True)
    assert "quarterdeck update" not in str(found.findings)
    assert "--all-in-one: not on OpenShift" in messages(found, "warning")
    assert found.image == IMAGE


@pytest.mark.parametrize(
    ("options", "image"),
    [
        pytest.param({"registry": "r.test/a/"}, "r.test/a/quarterdeck-release:1.0.0", id="default"),
        pytest.param({"image": "q:2", "registry": "r.test"}, "r.test/q:2", id="a name alone"),
        pytest.param({"image": IMAGE, "registry": "r.test"}, IMAGE, id="with its own registry"),
        pytest.param({"image": "q:2"}, "q:2", id="as it is"),
        pytest.param({}, "", id="none"),
    ],
)
def test_the_image_is_in_the_registry_unless_it_names_one(options: Any, image: str) -> None:
    assert wanted_image(InstallOptions(**options), "1.0.0") == image


def test_an_image_without_a_registry_is_told() -> None:
    told = "names no registry"
    assert told in messages(planned(facts(), image="quarterdeck:1.0.0"), "warning")
    assert told not in messages(planned(facts(), image="q:1", registry="r.test"), "warning")
    assert told not in messages(planned(facts()), "warning")


def test_another_registry_is_a_mirror_of_that_of_the_image() -> None:
    found = planned(facts(), registry="mirror.test/q")
    (made,) = (
        obj
        for applied in found.steps
        for obj in applied.step.objects
        if obj["metadata"]["name"] == "registry-mirrors"
    )
    # No argument: the release brings the arguments of its operator, and would remove it.
    assert made["kind"] == "ConfigMap"
    assert made["data"] == {"mirrors": "registry.example.test=mirror.test/q\n"}
    assert "mirrors=" not in str(planned(facts(), registry="registry.example.test").steps)


def test_files_for_registries_come_before_the_operator_that_reads_them() -> None:
    found = planned(facts(), trust={"pull-secret.json": b"{}", "release.pub": b"key"})
    titles = [applied.step.title for applied in found.steps]
    assert titles.index("files for registries") < titles.index("The cluster version operator")
    (step,) = (a.step for a in found.steps if a.step.title == "files for registries")
    secret, key = step.objects
    assert (secret["kind"], secret["data"]) == ("Secret", {".dockerconfigjson": "e30="})
    assert (key["metadata"]["name"], key["data"]) == (
        "release-verification",
        {"release.pub": "key"},
    )


def test_all_in_one_has_one_deployment_with_the_roles_of_all() -> None:
    found = planned(facts(), all_in_one=True)
    assert found.way == "all-in-one"
    assert names(found) == ["quarterdeck"]
    every = [obj for applied in found.steps for obj in applied.step.objects]
    subjects = [one for obj in every for one in obj.get("subjects", ())]
    own = {("ServiceAccount", "quarterdeck"), ("ServiceAccount", "router")}
    assert {(one["kind"], one["name"]) for one in subjects} <= {*own, ("ServiceAccount", "metal3")}
    assert "cluster-admin" not in {obj.get("roleRef", {}).get("name") for obj in every}
    identities = [
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in every
    ]
    repeated = {one for one in identities if identities.count(one) > 1}
    assert {kind for kind, _, _ in repeated} <= {"Namespace"}
