"""Catalogs, bundles and objects that are made to do harm, without a cluster."""

import base64
import copy
import json
import random
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operators.subscriptions.catalogs import (
    bundle,
    channel,
    csv,
    entry,
    loaded,
    package,
)

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import (
    ClusterServiceVersion,
    ConfigEntry,
    NamedDeployment,
)
from quarterdeck.cli.catalog import catalog as catalog_command
from quarterdeck.operators.subscriptions.catalog.installable import (
    MAX_DEPLOYMENTS,
    Installable,
    NotInstallable,
    installable,
    too_many_deployments,
)
from quarterdeck.operators.subscriptions.catalog.load import (
    MAX_CHANNEL,
    MAX_CHANNELS,
    MAX_SKIPS,
    load,
)
from quarterdeck.operators.subscriptions.catalogs import (
    MAX_CONFIG_MAPS,
    MAX_HOME,
    MAX_NAMESPACE,
    MAX_OTHERS,
    too_large,
    too_many,
)
from quarterdeck.operators.subscriptions.config.faults import config_faults, selector_faults
from quarterdeck.operators.subscriptions.config.merge import merged
from quarterdeck.operators.subscriptions.install.applied import APPLIED, last_applied, with_record
from quarterdeck.operators.subscriptions.install.config_objects import (
    MAX_NAMESPACE as MAX_WATCHED_OF_NAMESPACE,
)
from quarterdeck.operators.subscriptions.install.config_objects import MAX_WATCHED, watchable
from quarterdeck.operators.subscriptions.install.desired import (
    desired_deployment,
    named_deployments,
)
from quarterdeck.operators.subscriptions.install.records import MAX_RECORD
from quarterdeck.operators.subscriptions.names import label_value, without_reserved
from quarterdeck.operators.subscriptions.subscription_status import upgrade_warnings

QUICK = 20.0
"""Seconds: far more than it takes on a busy machine, far less than what the attack wants."""


def definition(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": name.partition(".")[2], **spec},
    }


def owning(obj: Object) -> dict[str, Any]:
    """The spec of a version that owns this definition."""
    owned = {"name": obj["metadata"]["name"], "version": "v1", "kind": "X"}
    return {"customresourcedefinitions": {"owned": [owned]}}


def why_not(made: Object) -> str:
    found = loaded(package(), channel(entry("p.v1")), made)
    assert not found.errors, found.errors
    judged = installable(found.catalog.packages["p"].bundles["p.v1"])
    assert isinstance(judged, NotInstallable)
    return judged.why


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("v1", "Namespace"),
        ("v1", "Node"),
        ("v1", "Pod"),
        ("v1", "Secret"),
        ("v2", "Service"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("security.openshift.io/v1", "SecurityContextConstraints"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("operators.coreos.com/v1", "OperatorGroup"),
        ("operators.coreos.com/v1alpha1", "Subscription"),
        ("config.openshift.io/v1", "Proxy"),
    ],
)
def test_a_bundle_with_an_object_of_another_kind_is_refused_whole(api: str, kind: str) -> None:
    obj = {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    assert f"it has a {kind} ({api})" in why_not(bundle("p.v1", "1.0.0", obj))


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        pytest.param(
            definition("proxies.config.openshift.io"),
            "the group config.openshift.io, which is reserved",
            id="the cluster's configuration",
        ),
        pytest.param(
            definition("subscriptions.operators.coreos.com"), "reserved", id="our own kinds"
        ),
        pytest.param(definition("notes.samples.quarterdeck.dev"), "reserved", id="our own group"),
        pytest.param(
            definition(
                "xs.example.com",
                conversion={
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": {"url": "https://10.0.0.1/"}},
                },
            ),
            "has a conversion webhook",
            id="a webhook that gets every object",
        ),
    ],
)
def test_a_definition_that_no_operator_may_bring(obj: Object, words: str) -> None:
    assert words in why_not(bundle("p.v1", "1.0.0", obj, **owning(obj)))


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "A", "a..b", "x" * 254, "a\nb", "-a"])
def test_names_that_are_none_are_refused_with_their_entry(name: str) -> None:
    for entries in (
        [package(name)],
        [package(), channel(entry("p.v1")), bundle("p.v1", "1.0.0", package=name)],
        [package(), channel(entry(name)), bundle(name, "1.0.0")],
    ):
        errors = loaded(*entries).errors
        assert any("is no name" in str(one) for one in errors), errors


@pytest.mark.parametrize("package_name", ["../escaped", "/tmp/escaped", "a/b"])
def test_a_built_catalog_stays_in_its_directory(tmp_path: Path, package_name: str) -> None:
    """The package of a bundle is the name of a directory of the catalog."""
    made = tmp_path / "bundle"
    for part in ("manifests", "metadata"):
        (made / part).mkdir(parents=True)
    (made / "manifests" / "csv.yaml").write_text(json.dumps(csv("p.v1", "1.0.0")))
    key = "operators.operatorframework.io.bundle"
    annotations = {f"{key}.package.v1": package_name, f"{key}.channels.v1": "c"}
    (made / "metadata" / "annotations.yaml").write_text(json.dumps({"annotations": annotations}))
    to = tmp_path / "catalog"
    result = CliRunner().invoke(catalog_command, ["build", str(made), "--to", str(to)])
    assert result.exit_code != 0
    assert not to.exists()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bundle"]


def test_a_channel_with_very_many_entries_is_refused_at_once() -> None:
    began = time.monotonic()
    entries = [entry(f"p.v{number}") for number in range(50_000)]
    found = loaded(package(), channel(*entries))
    assert any(f"has more than {MAX_CHANNEL:,} entries" in str(one) for one in found.errors)
    longest = [entry(f"p.v{n}", f"p.v{n - 1}", skips=["p.v0"] * 20) for n in range(MAX_CHANNEL)]
    assert loaded(package(), channel(*longest, *longest)).errors
    assert loaded(package(), channel(*longest)).errors
    assert time.monotonic() - began < QUICK


def test_very_many_skips_and_channels_are_refused() -> None:
    """A file that a ConfigMap can hold becomes ten times as large in memory."""
    skips = [entry(f"p.v{n}", skips=["a"] * (MAX_SKIPS // 10 + 1)) for n in range(10)]
    assert any("skip more than" in str(one) for one in loaded(package(), channel(*skips)).errors)
    many = [channel(entry("p.v1"), name=f"c{n}") for n in range(MAX_CHANNELS + 1)]
    found = loaded(package(channel="c0"), *many, bundle("p.v1", "1.0.0"))
    assert ["more than 200 channels" in str(one) for one in found.errors] == [True]
    few = loaded(package(channel="c0"), *many[:-1], bundle("p.v1", "1.0.0"))
    assert not few.errors


def test_entries_and_skips_count_as_memory() -> None:
    def size(**more: Any) -> int:
        made = loaded(package(), channel(entry("p.v1", **more)), bundle("p.v1", "1.0.0"))
        return made.catalog.size

    assert size(skips=["x"] * 1000) - size() > 100_000
    assert size(skipRange="||".join(["1.0.0"] * 100)) - size() >= 10_000


@pytest.mark.parametrize(
    ("namespace", "size", "words"),
    [
        ("home", MAX_HOME, ""),
        ("home", MAX_HOME + 1, "of the namespace home would have more than 128 MiB"),
        ("user", MAX_NAMESPACE - 5, ""),
        ("user", MAX_NAMESPACE, "of the namespace user would have more than 32 MiB"),
        ("last", MAX_NAMESPACE - 5, "all catalogs outside the namespace home"),
    ],
)
def test_nobody_takes_the_memory_of_others(namespace: str, size: int, words: str) -> None:
    others = {Key("user", "other"): 5}
    if namespace == "last":
        others = {Key(f"user{n}", "c"): MAX_NAMESPACE for n in range(MAX_OTHERS // MAX_NAMESPACE)}
    found = too_large(Key(namespace, "c"), size, others, "home")
    assert words in found if words else not found


def test_two_objects_of_one_kind_and_name_are_refused() -> None:
    """Each would undo the other, without an end."""
    twice = {"name": "engine", "spec": {"selector": {}, "template": {}}}
    install = {"strategy": "deployment", "spec": {"deployments": [twice, twice]}}
    why = why_not(bundle("p.v1", "1.0.0", install=install))
    assert "several Deployments of the name engine" in why
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    why = why_not(bundle("p.v1", "1.0.0", service, {**service, "spec": {"type": "NodePort"}}))
    assert "several Services of the name s" in why


def test_aliases_that_make_a_small_file_large_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    found = load([("bomb.yaml", "schema: olm.package\nname: p\n" + "\n".join(lines))])
    (error,) = found.errors
    assert (error.file, "aliases expanded" in error.message) == ("bomb.yaml", True)


POD: Object = {"containers": [{"name": "main"}]}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        pytest.param(
            {**POD, "volumes": {}}, "spec.volumes: an object, not a list", id="an object for a list"
        ),
        pytest.param({**POD, "tolerations": ["x"]}, "tolerations[0]: text", id="text in a list"),
        pytest.param({**POD, "volumes": [None]}, "volumes[0]: null", id="null in a list"),
        pytest.param({}, "spec.containers: it is missing", id="no containers"),
        pytest.param({"containers": [{}]}, "containers[0].name: it is missing", id="no name"),
        pytest.param(
            {"containers": [{"name": "main", "env": [{"name": ["x"]}]}]},
            "env[0].name: a list, not text",
            id="a list for a name",
        ),
        pytest.param(7, "template.spec: a whole number, not an object", id="no pod"),
    ],
)
def test_a_deployment_that_is_none_is_refused_before_anything_reads_it(
    pod: Any, words: str
) -> None:
    """The config is merged into the next version before an API server has seen that one."""
    named = {"name": "d", "spec": {"selector": {}, "template": {"spec": pod}}}
    install = {"strategy": "deployment", "spec": {"deployments": [named]}}
    assert words in why_not(bundle("p.v1", "1.0.0", install=install))


ANY: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", 0, True, 1.5, [], {}, [None], ["x", "x"], [{}], {"": None}, {"name": ["x"]}]
)
DEPLOYMENT: Object = {
    "selector": {"matchLabels": {"app": "d"}},
    "template": {
        "metadata": {"labels": {"app": "d"}, "annotations": {"a": "b"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "env": [{"name": "A", "value": "x"}],
                    "envFrom": [{"configMapRef": {"name": "c"}}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "resources": {"limits": {"cpu": 1}},
                }
            ],
            "initContainers": [{"name": "init"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "tolerations": [{"key": "k"}],
            "nodeSelector": {"a": "b"},
            "affinity": {"nodeAffinity": {}},
        },
    },
}
WHOLE_ENTRY = msgspec.convert(
    {
        **{part: DEPLOYMENT["template"]["spec"][part] for part in ("volumes", "tolerations")},
        **{part: DEPLOYMENT["template"]["spec"][part] for part in ("nodeSelector", "affinity")},
        **DEPLOYMENT["template"]["spec"]["containers"][0],
        "containers": ["main", "init"],
        "annotations": {"a": "c"},
    },
    ConfigEntry,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of everything inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for step, one in inside:
        yield (*path, step)
        if isinstance(one, dict | list):
            yield from places(one, (*path, step))


@given(at=st.sampled_from(list(places(DEPLOYMENT))), value=ANY)
def test_what_is_installable_can_be_merged(at: tuple[str | int, ...], value: Any) -> None:
    """Whatever a bundle has anywhere in a Deployment: it is refused, or the config fits in."""
    spec = copy.deepcopy(DEPLOYMENT)
    owner: Any = spec
    for step in at[:-1]:
        owner = owner[step]
    owner[at[-1]] = value
    install = {"strategy": "deployment", "spec": {"deployments": [{"name": "d", "spec": spec}]}}
    catalog = loaded(package(), bundle("p.v1", "1.0.0", install=install)).catalog
    found = installable(catalog.packages["p"].bundles["p.v1"])
    if isinstance(found, NotInstallable):
        assert found.why.startswith("its ClusterServiceVersion is not valid: ")
        return
    (deployment,) = named_deployments(found.typed)
    result = merged(deployment, [WHOLE_ENTRY], {"HTTP_PROXY": "http://x"}, {"olm": "x"})
    assert result.origins
    config_faults(result, [WHOLE_ENTRY])
    selector_faults([WHOLE_ENTRY], [deployment])
    desired_deployment(found.typed, result)


def test_nulls_of_a_bundle_are_as_the_server_takes_them() -> None:
    template = {"metadata": None, "spec": {**POD, "nodeSelector": None, "volumes": None}}
    named = {"name": "d", "spec": {"selector": {}, "template": template}}
    install = {"strategy": "deployment", "spec": {"deployments": [named]}}
    made = loaded(package(), bundle("p.v1", "1.0.0", install=install)).catalog.packages["p"]
    found = installable(made.bundles["p.v1"])
    assert isinstance(found, Installable), found
    (deployment,) = named_deployments(found.typed)
    assert deployment.spec["template"] == {"spec": POD}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        pytest.param({"labels": ["x"]}, "Expected `object | null`, got `array`", id="labels"),
        pytest.param({"annotations": {"a": 1}}, "Expected `str | null`, got `int`", id="a number"),
        pytest.param({}, "missing required field `spec`", id="no spec"),
    ],
)
def test_a_definition_of_another_form_is_refused(part: Object, words: str) -> None:
    made = definition("xs.example.com")
    made["metadata"] |= part
    if not part:
        del made["spec"]
    assert words in why_not(bundle("p.v1", "1.0.0", made, **owning(made)))


def raw_bundle(text: str) -> Object:
    made = bundle("p.v1", "1.0.0")
    data = base64.b64encode(text.encode()).decode()
    made["properties"].append({"type": "olm.bundle.object", "value": {"data": data}})
    return made


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"kind": "X", "metadata": {"name": "x"}, "a": ' + "[" * 50_000, id="inside"),
        pytest.param('{"kind": "X"', id="cut"),
        pytest.param('{"kind": 1, "metadata": {"name": "x"}}', id="no kind"),
        pytest.param("[]", id="no object"),
        pytest.param("", id="nothing"),
    ],
)
def test_an_object_that_is_none_is_a_finding_of_the_catalog(text: str) -> None:
    errors = loaded(package(), channel(entry("p.v1")), raw_bundle(text)).errors
    assert any("olm.bundle p.v1: olm.bundle.object[1]" in str(one) for one in errors), errors


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            '{"kind": "Service", "kind": "Pod", "metadata": {"name": "x"}}',
            "the key 'kind' twice",
            id="a key twice",
        ),
        pytest.param(
            '{"kind": "Service", "metadata": {"name": "x"}, "a": ' + "[" * 200 + "]" * 200 + "}",
            "nested more than",
            id="nested",
        ),
    ],
)
def test_an_object_that_two_parsers_would_read_differently_is_not_installed(
    text: str, words: str
) -> None:
    why = why_not(raw_bundle(text))
    assert words in why
    assert "catalog.json: olm.bundle p.v1" in why


def test_labels_of_two_versions_are_never_the_same() -> None:
    """The clean-up of one selects by label: it would delete the objects of the other."""
    long = "a" * 100
    assert len(label_value(long)) == 63
    assert label_value(label_value(long)) != label_value(long)
    assert label_value("short.v1") == "short.v1"
    assert label_value("b" * 63) != "b" * 63


def test_labels_and_annotations_of_ours_are_dropped() -> None:
    found = {"quarterdeck.dev/replaces": "x", "app": "y", "empty": None}
    assert without_reserved(found) == {"app": "y"}


DESIRED: Object = {
    "metadata": {
        "name": "engine",
        "namespace": "n",
        "annotations": {"quarterdeck.dev/csv": "n/engine.v1"},
        "ownerReferences": [{"uid": "1"}],
    },
    "spec": {"replicas": 1},
}


def recorded(value: object, **metadata: Any) -> Object:
    text = base64.b64encode(zlib.compress(json.dumps(value).encode())).decode()
    annotations = {**DESIRED["metadata"]["annotations"], APPLIED: text}
    return {"metadata": {**DESIRED["metadata"], "annotations": annotations, **metadata}, "spec": {}}


def test_what_was_applied_comes_back_whole() -> None:
    live = with_record(DESIRED)
    live["spec"] = {"replicas": 5}
    assert last_applied(live) == with_record(DESIRED)


@pytest.mark.parametrize(
    "live",
    [
        pytest.param({"metadata": {"name": "engine"}}, id="none"),
        pytest.param(recorded({**DESIRED, "status": {}}), id="more than that"),
        pytest.param(recorded({"metadata": {"annotations": {}}}), id="less than that"),
        pytest.param(recorded([]), id="no object"),
        pytest.param(recorded(DESIRED, name="other"), id="another object"),
        pytest.param(recorded(DESIRED, ownerReferences=[{"uid": "2"}]), id="another owner"),
        pytest.param(recorded(DESIRED | {"x": "y" * (3 << 20)}), id="a bomb"),
    ],
)
def test_a_record_that_somebody_wrote_is_not_used(live: Object) -> None:
    assert last_applied(live) is None


def test_a_very_long_object_has_no_record() -> None:
    text = random.Random(1).randbytes(MAX_RECORD).hex()
    made = with_record(DESIRED | {"spec": {"x": text}})
    assert APPLIED not in made["metadata"]["annotations"]


def containers(count: int) -> NamedDeployment:
    pod = {"containers": [{"name": f"c{number}"} for number in range(count)]}
    return NamedDeployment(name="d", spec={"template": {"spec": pod}})


def test_a_config_of_very_many_items_is_merged_quickly() -> None:
    """As many as an object can hold; in the square of their number this would take minutes."""
    many = range(20_000)
    entry = ConfigEntry(
        tolerations=tuple({"key": f"k{one}"} for one in many),
        env_from=tuple({"prefix": f"p{one}"} for one in many[:2_000]),
    )
    began = time.monotonic()
    made = merged(containers(1), [entry, entry])
    assert time.monotonic() - began < QUICK
    assert len(made.deployment["spec"]["template"]["spec"]["tolerations"]) == len(many)


def test_a_config_that_grows_with_each_container_is_a_fault_and_not_merged() -> None:
    """One megabyte of variables for as many containers would be gigabytes."""
    entry = ConfigEntry(env=tuple({"name": f"v{one}"} for one in range(5_000)))
    began = time.monotonic()
    made = merged(containers(20_000), [entry])
    (fault,) = config_faults(made, [entry])
    assert time.monotonic() - began < QUICK
    assert (fault.reason, fault.entry) == ("EnvFailure", 0)
    assert "add 100,000,000 variables, sources and mounts" in str(fault)
    assert "env" not in made.deployment["spec"]["template"]["spec"]["containers"][0]
    assert config_faults(merged(containers(1), [entry]), [entry]) == []


def test_what_an_update_would_lose_is_found_quickly() -> None:
    """A merge for each entry and Deployment would take minutes."""
    config = [
        ConfigEntry(env=tuple({"name": f"v{entry}-{one}"} for one in range(70)))
        for entry in range(64)
    ]
    spec = containers(1).spec
    many = [NamedDeployment(name=f"d{n}", spec=spec) for n in range(MAX_DEPLOYMENTS)]
    began = time.monotonic()
    (lost,) = upgrade_warnings(config[:1], many, many[1:])
    assert "no longer applies to Deployment d0" in lost
    assert upgrade_warnings(config, many, many) == []
    assert time.monotonic() - began < QUICK


def test_a_version_has_no_more_deployments_than_the_limit() -> None:
    named = [{"name": f"d{n}", "spec": DEPLOYMENT} for n in range(MAX_DEPLOYMENTS + 1)]
    install = {"strategy": "deployment", "spec": {"deployments": named}}
    assert "more than 50 Deployments" in why_not(bundle("p.v1", "1.0.0", install=install))
    by_hand = msgspec.convert(csv("x", "1.0.0", install=install), ClusterServiceVersion)
    assert "more than 50 Deployments" in too_many_deployments(by_hand)
    assert len(named_deployments(by_hand)) == MAX_DEPLOYMENTS


def test_a_namespace_has_no_more_watches_than_its_share() -> None:
    """What others watch counts for them, and what is watched already costs nothing."""
    wanted = [Key("ns", f"new{number}") for number in range(MAX_WATCHED + 5)]
    others = [Key("other", str(number)) for number in range(MAX_WATCHED_OF_NAMESPACE)]
    assert watchable(wanted, others) == wanted[:MAX_WATCHED]
    mine = [Key("ns", str(number)) for number in range(MAX_WATCHED_OF_NAMESPACE - 3)]
    assert watchable(wanted, [*others, *mine]) == wanted[:3]
    full = [*mine, *wanted[:3]]
    assert watchable(wanted, full) == wanted[:3]
    assert watchable(mine[:50], full) == mine[:50]
    assert watchable([], full) == []


def test_a_namespace_has_no_more_catalogs_than_its_share() -> None:
    mine = [Key("ns", str(number)) for number in range(MAX_CONFIG_MAPS)]
    others = [Key("other", str(number)) for number in range(MAX_CONFIG_MAPS)]
    assert too_many(Key("ns", "new"), others) == ""
    assert too_many(Key("ns", "new"), [*others, *mine[1:]]) == ""
    assert "more than 100 ConfigMaps; delete one" in too_many(Key("ns", "new"), mine)
    assert too_many(mine[0], mine) == ""
