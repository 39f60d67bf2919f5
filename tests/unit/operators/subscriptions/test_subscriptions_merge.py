"""The merge of a Subscription's config over a CSV's Deployments: vectors and properties."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ConfigEntry, NamedDeployment
from quarterdeck.operators.subscriptions.config.merge import MergedDeployment, merged
from quarterdeck.operators.subscriptions.config.origins import (
    CSV,
    FieldOrigin,
    units,
    unkeyed,
)
from quarterdeck.operators.subscriptions.config.origins import (
    PROXY as FROM_PROXY,
)

LABELS = {"app": "etcd-operator"}


def deployment(*containers: Object, labels: Object = LABELS, **pod: Any) -> NamedDeployment:
    template = {
        "metadata": {"labels": dict(labels)},
        "spec": {"containers": list(containers), **pod},
    }
    return NamedDeployment(name="etcd-operator", spec={"replicas": 1, "template": template})


def container(name: str = "one", **fields: Any) -> Object:
    return {"name": name, "image": f"example.com/{name}", **fields}


def var(name: str, value: str) -> Object:
    return {"name": name, "value": value}


def pod_of(result: MergedDeployment) -> Any:
    return result.deployment["spec"]["template"]["spec"]


def merged_container(entry: ConfigEntry, **fields: Any) -> Any:
    return pod_of(merged(deployment(container(**fields)), [entry]))["containers"][0]


FOO, BAR = var("foo", "1"), var("bar", "2")
FOO2, BAR2, EXTRA = var("foo", "3"), var("bar", "4"), var("extra", "5")
PROXY = {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:2", "NO_PROXY": ".local"}
PROXY_VARS = [var(name, value) for name, value in PROXY.items()]
E: Object = {"configMapRef": {"name": "e"}}
M: Object = {"name": "v", "mountPath": "/v"}
R: Object = {"limits": {"cpu": "1"}}
T, U = {"key": "t", "operator": "Exists"}, {"key": "u", "operator": "Exists"}


@pytest.mark.parametrize(
    ("had", "new", "wanted"),
    [
        pytest.param([FOO, BAR], [EXTRA, FOO2, BAR2], [FOO2, BAR2, EXTRA], id="in place, then new"),
        pytest.param([FOO, BAR], [var("bar", "")], [FOO, var("bar", "")], id="empty is a value"),
        pytest.param([], [FOO, BAR, FOO2], [BAR, FOO2], id="the last duplicate, once"),
        pytest.param([FOO, BAR, FOO2], [], [BAR, FOO2], id="a CSV's duplicates as a process sees"),
        pytest.param([FOO], [], [FOO], id="nothing named, nothing changed"),
        pytest.param(
            [FOO],
            [{"name": "foo", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            [{"name": "foo", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            id="replaced whole, not merged",
        ),
    ],
)
def test_env(had: list[Object], new: list[Object], wanted: list[Object]) -> None:
    assert merged_container(ConfigEntry(env=tuple(new)), env=had)["env"] == wanted


def test_proxy_in_every_container_after_its_own() -> None:
    result = merged(
        deployment(container("a"), container("b", env=[FOO]), container("c", env=[BAR])),
        [],
        PROXY,
    )
    assert [one["env"] for one in pod_of(result)["containers"]] == [
        PROXY_VARS,
        [FOO, *PROXY_VARS],
        [BAR, *PROXY_VARS],
    ]


@pytest.mark.parametrize(
    ("name", "value", "added"),
    [
        pytest.param("NO_PROXY", "", False, id="an empty value counts"),
        pytest.param("HTTP_PROXY", "http://mine", False, id="one overrides the unit"),
        pytest.param("https_proxy", "http://mine", True, id="lower case is another variable"),
    ],
)
def test_proxy_is_one_unit(name: str, value: str, added: bool) -> None:
    entry = ConfigEntry(env=(var(name, value),))
    (one,) = pod_of(merged(deployment(container()), [entry], PROXY))["containers"]
    assert one["env"] == [var(name, value), *(PROXY_VARS if added else [])]


def test_a_proxy_variable_in_an_entry_for_another_deployment_overrides_the_unit_too() -> None:
    entry = ConfigEntry(deployments=("another",), env=(var("NO_PROXY", "x"),))
    (one,) = pod_of(merged(deployment(container()), [entry], PROXY))["containers"]
    assert "env" not in one


def test_env_from_equal_entries_once() -> None:
    source = {"configMapRef": {"name": "e"}}
    assert merged_container(ConfigEntry(env_from=(source,)), envFrom=[source])["envFrom"] == [
        source
    ]


def test_tolerations_appended_unless_equal() -> None:
    result = merged(deployment(container(), tolerations=[U]), [ConfigEntry(tolerations=(U, T))])
    assert pod_of(result)["tolerations"] == [U, T]


def test_volumes_by_name_and_mounts_by_path() -> None:
    """Two mounts of one volume stay two; upstream keys by the volume's name and loses one."""
    had = [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]
    new = {"name": "w", "mountPath": "/b"}
    entry = ConfigEntry(
        volumes=({"name": "v", "secret": {"secretName": "s"}}, {"name": "w", "emptyDir": {}}),
        volume_mounts=(new,),
    )
    given_volumes = [{"name": "v", "emptyDir": {}}]
    result = merged(deployment(container(volumeMounts=had), volumes=given_volumes), [entry])
    assert pod_of(result)["volumes"] == list(entry.volumes)
    assert pod_of(result)["containers"][0]["volumeMounts"] == [had[0], new]


@pytest.mark.parametrize(
    ("had", "new", "wanted"),
    [
        pytest.param(
            {"a": "1", "b": "2", "c": "3", "d": "4"}, {"foo": "bar"}, {"foo": "bar"}, id="replaced"
        ),
        pytest.param({"a": "1"}, None, {"a": "1"}, id="absent keeps"),
        pytest.param({"a": "1"}, {}, None, id="empty clears"),
    ],
)
def test_node_selector(had: Object, new: Any, wanted: Any) -> None:
    result = merged(deployment(container(), nodeSelector=had), [ConfigEntry(node_selector=new)])
    assert pod_of(result).get("nodeSelector") == wanted


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        pytest.param({}, None, id="empty clears"),
        pytest.param(None, {"limits": {"cpu": "1"}}, id="absent keeps"),
        pytest.param({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1"}}, id="replaced whole"),
    ],
)
def test_resources(new: Any, wanted: Any) -> None:
    got = merged_container(ConfigEntry(resources=new), resources={"limits": {"cpu": "1"}})
    assert got.get("resources") == wanted


NODE: Object = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
POD_AFFINITY: Object = {"preferredDuringSchedulingIgnoredDuringExecution": []}


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        pytest.param(None, {"nodeAffinity": NODE, "podAffinity": POD_AFFINITY}, id="absent keeps"),
        pytest.param({}, None, id="empty erases all"),
        pytest.param({"nodeAffinity": {}}, {"podAffinity": POD_AFFINITY}, id="empty part"),
        pytest.param(
            {"podAntiAffinity": NODE},
            {"nodeAffinity": NODE, "podAffinity": POD_AFFINITY, "podAntiAffinity": NODE},
            id="an absent part keeps",
        ),
    ],
)
def test_affinity(new: Any, wanted: Any) -> None:
    had = {"nodeAffinity": NODE, "podAffinity": POD_AFFINITY}
    result = merged(deployment(container(), affinity=had), [ConfigEntry(affinity=new)])
    assert pod_of(result).get("affinity") == wanted


def test_annotations_of_deployment_and_template() -> None:
    result = merged(
        deployment(container()), [ConfigEntry(annotations={"a": "1"})], {}, {"a": "0", "b": "2"}
    )
    assert result.deployment["metadata"]["annotations"] == {"a": "1"}
    template = result.deployment["spec"]["template"]["metadata"]["annotations"]
    assert template == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("field", "entry", "value"),
    [
        ("env", ConfigEntry(env=(FOO,)), [FOO]),
        ("envFrom", ConfigEntry(env_from=(E,)), [E]),
        ("volumeMounts", ConfigEntry(volume_mounts=(M,)), [M]),
        ("resources", ConfigEntry(resources=R), R),
    ],
)
def test_init_containers_only_by_name(field: str, entry: ConfigEntry, value: Any) -> None:
    spec = deployment(container("main"), initContainers=[container("prepare")])
    everywhere = pod_of(merged(spec, [entry]))
    assert field not in everywhere["initContainers"][0]
    assert everywhere["containers"][0][field] == value
    named = pod_of(merged(spec, [msgspec.structs.replace(entry, containers=("prepare",))]))
    assert named["initContainers"][0][field] == value
    assert field not in named["containers"][0]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {"k8s-app": "prometheus-operator"}}, True),
        ({"matchLabels": {"olm.cahash": "123"}}, False),
        ({"matchExpressions": [{"key": "k8s-app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "k8s-app", "operator": "Sometimes"}]}, False),
    ],
)
def test_matching_is_on_the_template_labels_of_the_csv(selector: Any, matches: bool) -> None:
    """`olm.cahash` is on the pods at run time only; an invalid selector matches nothing."""
    spec = deployment(container(), labels={"k8s-app": "prometheus-operator"})
    result = merged(spec, [ConfigEntry(selector=selector, env=(FOO,))])
    assert (result.entries == (0,)) is matches
    assert ("env" in pod_of(result)["containers"][0]) is matches


def test_later_entries_win_and_the_origin_says_what_they_replaced() -> None:
    config = [ConfigEntry(env=(FOO,)), ConfigEntry(env=(FOO2,))]
    result = merged(deployment(container(env=[var("foo", "0")])), config)
    (origin,) = (one for one in result.origins if one.field.endswith("env[foo]"))
    assert (origin.source, origin.value, origin.replaced) == ("config[1]", FOO2, FOO)


def test_a_removed_field_has_an_origin() -> None:
    result = merged(
        deployment(container(), nodeSelector={"a": "b"}), [ConfigEntry(node_selector={})]
    )
    assert (
        FieldOrigin(
            field="spec.template.spec.nodeSelector",
            source="config[0]",
            replaced={"a": "b"},
            removed=True,
        )
        in result.origins
    )


# Properties

names = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["", "1", "2"])
variables = st.lists(st.builds(var, names, values), max_size=4)
distinct_variables = st.lists(
    st.builds(var, names, values), max_size=3, unique_by=lambda v: v["name"]
)
sources = st.lists(st.builds(lambda n: {"configMapRef": {"name": n}}, names), max_size=3)
volumes = st.lists(
    st.builds(lambda n, v: {"name": n, "hostPath": {"path": v}}, names, values), max_size=3
)
mounts = st.lists(
    st.builds(lambda n, p: {"name": n, "mountPath": f"/{p}"}, names, names), max_size=3
)
unique_volumes = st.lists(
    st.builds(lambda n, v: {"name": n, "hostPath": {"path": v}}, names, values),
    max_size=3,
    unique_by=lambda v: v["name"],
)
unique_mounts = st.lists(
    st.builds(lambda n, p: {"name": n, "mountPath": f"/{p}"}, names, names),
    max_size=3,
    unique_by=lambda m: m["mountPath"],
)
tolerations = st.lists(
    st.builds(lambda k: {"key": k, "operator": "Exists"}, names), max_size=3, unique_by=str
)
maps = st.dictionaries(names, values, max_size=3)
some_maps = st.dictionaries(names, values, min_size=1, max_size=3)
optional_maps = st.none() | maps
resources = st.none() | st.builds(lambda m: {"limits": m} if m else {}, maps)
affinities = st.none() | st.dictionaries(
    st.sampled_from(["nodeAffinity", "podAffinity"]),
    st.sampled_from([{}, NODE, POD_AFFINITY]),
    max_size=2,
)
full_affinities = st.dictionaries(
    st.sampled_from(["nodeAffinity", "podAffinity"]),
    st.sampled_from([NODE, POD_AFFINITY]),
    min_size=1,
    max_size=2,
)
selectors = st.none() | st.builds(
    lambda v: {"matchLabels": {"app": v}}, st.sampled_from(["etcd-operator", "etcd-operator", "x"])
)

entries = st.builds(
    ConfigEntry,
    selector=selectors,
    deployments=st.lists(st.sampled_from(["d", "d", "other"]), max_size=1).map(tuple),
    containers=st.lists(st.sampled_from(["main", "side", "init"]), max_size=2).map(tuple),
    resources=resources,
    node_selector=optional_maps,
    tolerations=tolerations.map(tuple),
    env=variables.map(tuple),
    env_from=sources.map(tuple),
    volumes=volumes.map(tuple),
    volume_mounts=mounts.map(tuple),
    affinity=affinities,
    annotations=maps,
)
configs = st.lists(entries, max_size=3)


def containers_of(name: str) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries(
        {"name": st.just(name), "image": st.just("i"), "args": st.just(["--x"])},
        optional={
            "env": distinct_variables,
            "volumeMounts": unique_mounts,
            "envFrom": sources,
            "resources": st.builds(lambda m: {"limits": m}, some_maps),
        },
    )


@st.composite
def deployments(draw: st.DrawFn) -> NamedDeployment:
    pod: Object = {
        "containers": [draw(containers_of("main")), draw(containers_of("side"))],
        "initContainers": [draw(containers_of("init"))],
        "serviceAccountName": "x",
    }
    for field, strategy in (
        ("volumes", unique_volumes),
        ("tolerations", tolerations),
        ("nodeSelector", some_maps),
        ("affinity", full_affinities),
    ):
        if draw(st.booleans()):
            pod[field] = draw(strategy)
    meta: Object = {"labels": dict(LABELS)}
    if draw(st.booleans()):
        meta["annotations"] = draw(some_maps)
    template = {"metadata": meta, "spec": pod}
    return NamedDeployment(name="d", spec={"replicas": 2, "template": template})


def again(result: MergedDeployment) -> NamedDeployment:
    return NamedDeployment(name=result.name, spec=result.deployment["spec"])


@settings(max_examples=60)
@given(deployments(), configs, st.sampled_from([{}, PROXY]))
def test_the_merge_is_idempotent_and_leaves_its_input_alone(
    spec: NamedDeployment, config: list[ConfigEntry], proxy: Any
) -> None:
    """The config over its own result gives the same result."""
    before = copy.deepcopy(spec)
    once = merged(spec, config, proxy)
    assert spec == before
    assert merged(again(once), config, proxy).deployment["spec"] == once.deployment["spec"]


@settings(max_examples=60)
@given(deployments(), configs, st.sampled_from([{}, PROXY]))
def test_no_container_is_invented_or_lost(
    spec: NamedDeployment, config: list[ConfigEntry], proxy: Any
) -> None:
    pod = pod_of(merged(spec, config, proxy))
    assert [one["name"] for one in pod["containers"]] == ["main", "side"]
    assert [one["name"] for one in pod["initContainers"]] == ["init"]


GONE = "gone"
"""The value of a field that an entry removes."""
POD = "spec.template.spec"
AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
LISTS: dict[str, tuple[str, Callable[[Object], str]]] = {
    "env": ("env", lambda item: str(item["name"])),
    "envFrom": ("env_from", unkeyed),
    "volumeMounts": ("volume_mounts", lambda item: str(item["mountPath"])),
    "volumes": ("volumes", lambda item: str(item["name"])),
    "tolerations": ("tolerations", unkeyed),
}
"""The lists of a pod and its containers: the field of an entry, and what identifies an item."""
IN_CONTAINERS = ("env", "envFrom", "volumeMounts")


def is_for(entry: ConfigEntry, container_name: str = "") -> bool:
    """Whether the entry is for the Deployment of `deployments`, and for this container of it."""
    labels = (entry.selector or {}).get("matchLabels", LABELS)
    if labels != LABELS or "other" in entry.deployments:
        return False
    return not container_name or container_name in (entry.containers or ("main", "side"))


def container_paths() -> dict[str, str]:
    return {
        "main": f"{POD}.containers[main]",
        "side": f"{POD}.containers[side]",
        "init": f"{POD}.initContainers[init]",
    }


def named_by(entry: ConfigEntry) -> dict[str, Any]:
    """Every field that the entry names, with the value that it wants; the spec's table again."""
    if not is_for(entry):
        return {}
    found: dict[str, Any] = {}

    def add_list(path: str, name: str) -> None:
        field, key = LISTS[name]
        for item in getattr(entry, field):
            found[f"{path}.{name}[{key(item)}]"] = item

    for name, path in container_paths().items():
        if is_for(entry, name):
            for of in IN_CONTAINERS:
                add_list(path, of)
            if entry.resources is not None:
                found[f"{path}.resources"] = entry.resources or GONE
    for of in LISTS.keys() - set(IN_CONTAINERS):
        add_list(POD, of)
    if entry.node_selector is not None:
        found[f"{POD}.nodeSelector"] = entry.node_selector or GONE
    if entry.affinity is not None:
        parts = entry.affinity or dict.fromkeys(AFFINITIES)
        for part, value in parts.items():
            found[f"{POD}.affinity.{part}"] = value or GONE
    for key, value in entry.annotations.items():
        for path in ("metadata", "spec.template.metadata"):
            found[f"{path}.annotations[{key}]"] = value
    return found


def units_of(spec: NamedDeployment) -> dict[str, Any]:
    return dict(units({"metadata": {}, "spec": spec.spec}))


@settings(max_examples=200)
@given(deployments(), configs, st.sampled_from([{}, PROXY]))
def test_provenance_explains_every_difference(
    spec: NamedDeployment, config: list[ConfigEntry], proxy: Any
) -> None:
    """A field differs only if its source is one that names it, with the value that it has."""
    result = merged(spec, config, proxy)
    before, after = units_of(spec), dict(units(result.deployment))
    origins = {one.field: one for one in result.origins}
    named = {f"config[{index}]": named_by(entry) for index, entry in enumerate(config)}
    named[FROM_PROXY] = {
        f"{path}.env[{name}]": var(name, value)
        for name, value in proxy.items()
        for path in container_paths().values()
        if "initContainers" not in path
    }
    for field in before.keys() | after.keys():
        if before.get(field) != after.get(field):
            assert origins[field].source != CSV, field
    for field, value in after.items():
        assert origins[field].value == value
    for origin in origins.values():
        assert origin.removed == (origin.field not in after)
        if origin.source == CSV:
            assert before[origin.field] == origin.value
        else:
            wanted = GONE if origin.removed else origin.value
            assert named[origin.source][origin.field] == wanted, origin


@settings(max_examples=200)
@given(deployments(), configs)
def test_what_the_config_does_not_name_is_untouched(
    spec: NamedDeployment, config: list[ConfigEntry]
) -> None:
    """No field of the Deployment, and no container that no entry is for."""
    result = merged(spec, config)
    before, after = units_of(spec), dict(units(result.deployment))
    named = {field for entry in config for field in named_by(entry)}
    assert {field: value for field, value in after.items() if field not in named} == {
        field: value for field, value in before.items() if field not in named
    }
    had, has = spec.spec["template"]["spec"], pod_of(result)
    for part in ("containers", "initContainers"):
        for old, new in zip(had[part], has[part], strict=True):
            if not any(is_for(entry, old["name"]) for entry in config):
                assert new == old


@settings(max_examples=200)
@given(deployments(), entries, entries)
def test_the_order_of_entries_counts(
    spec: NamedDeployment, first: ConfigEntry, second: ConfigEntry
) -> None:
    """Two entries give what the second gives over the result of the first; what it names wins."""
    both = merged(spec, [first, second]).deployment
    assert merged(again(merged(spec, [first])), [second]).deployment["spec"] == both["spec"]
    after = dict(units(both))
    for field, value in named_by(second).items():
        assert after.get(field, GONE) == value, field
    later = named_by(second).keys()
    for field, value in named_by(first).items():
        if field not in later:
            assert after.get(field, GONE) == value, field


@settings(max_examples=200)
@given(deployments(), configs)
def test_lists_keep_their_order_and_new_items_follow_in_that_of_the_config(
    spec: NamedDeployment, config: list[ConfigEntry]
) -> None:
    had, has = spec.spec["template"]["spec"], pod_of(merged(spec, config))

    def check(old: Object, new: Object, name: str, container_name: str = "") -> None:
        field, key = LISTS[name]
        wanted = dict.fromkeys(map(key, old.get(name, ())))
        for entry in config:
            if is_for(entry, container_name):
                keys = [key(item) for item in getattr(entry, field)]
                if name in ("env", "volumes", "volumeMounts"):
                    # Of several with one key the last counts, at its place.
                    keys = list(dict.fromkeys(reversed(keys)))[::-1]
                wanted |= dict.fromkeys(keys)
        assert list(dict.fromkeys(map(key, new.get(name, ())))) == list(wanted), name

    for part in ("containers", "initContainers"):
        for old, new in zip(had[part], has[part], strict=True):
            for name in IN_CONTAINERS:
                check(old, new, name, old["name"])
    for name in ("volumes", "tolerations"):
        check(had, has, name)
