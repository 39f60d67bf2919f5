"""`quarterdeck catalog` and `quarterdeck subscription render`, and arguments as pods have them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from tests.places import DOCS, FIXTURES

from quarterdeck.cli.main import arguments, cli
from quarterdeck.cli.subscription import views_text
from quarterdeck.operators.subscriptions.inspect import SubscriptionView


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """The catalog of the sample operator's two versions."""
    made = run("catalog", "build", DOCS / "examples" / "bundles", "--to", tmp_path / "catalog")
    assert made.exit_code == 0, made.output
    return tmp_path / "catalog"


def subscription(directory: Path, **spec: Any) -> Path:
    path = directory / "subscription.json"
    made = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": "s", "namespace": "here"},
        "spec": {"package": "sample-operator", **spec},
    }
    path.write_text(json.dumps(made))
    return path


DOCUMENT = {
    "selector": {"matchLabels": {"k8s-app": "sample-operator"}},
    "resources": {
        "requests": {"memory": "64Mi", "cpu": "250m"},
        "limits": {"memory": "128Mi", "cpu": "500m"},
    },
    "nodeSelector": {"disktype": "ssd"},
    "tolerations": [{"key": "key", "operator": "Equal", "value": "value", "effect": "NoSchedule"}],
    "volumes": [{"name": "config-volume", "configMap": {"name": "etcd-operator-config"}}],
    "volumeMounts": [{"mountPath": "/config", "name": "config-volume"}],
    "env": [
        {
            "name": "SPECIAL_LEVEL_KEY",
            "valueFrom": {"configMapKeyRef": {"name": "special-config", "key": "special.how"}},
        }
    ],
    "envFrom": [{"configMapRef": {"name": "etcd-env-config"}}],
}


def test_the_first_example_of_the_document(catalog: Path, tmp_path: Path) -> None:
    file = subscription(tmp_path, config=[DOCUMENT])
    done = run("subscription", "render", "-f", file, "--catalog", catalog, "-o", "json")
    assert done.exit_code == 0, done.output
    pod = json.loads(done.output)["spec"]["template"]["spec"]
    for field in ("nodeSelector", "tolerations", "volumes"):
        assert pod[field] == DOCUMENT[field]
    (container,) = pod["containers"]
    for field in ("resources", "volumeMounts", "envFrom"):
        assert container[field] == DOCUMENT[field]
    assert container["env"][-1:] == DOCUMENT["env"]
    assert container["env"][3] == {"name": "RELEASE_VERSION", "value": "0.2.0"}


def test_the_origins_and_the_proxy(catalog: Path, tmp_path: Path) -> None:
    proxy = tmp_path / "proxy.yaml"
    proxy.write_text(
        "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\n"
        "spec: {httpProxy: http://proxy.example.com}\n"
    )
    debug = [{"env": [{"name": "ARGS", "value": "-v=4"}]}]
    file = subscription(tmp_path, config=debug, startingCSV="sample-operator.v0.1.0")
    words = ("subscription", "render", "-f", file, "--catalog", catalog, "--proxy", proxy)
    done = run(*words, "--provenance", "-o", "json")
    found = {one["field"]: (one["source"], one["value"]) for one in json.loads(done.output)}
    container = "spec.template.spec.containers[sample-operator]"
    assert found[f"{container}.env[ARGS]"] == ("config[0]", {"name": "ARGS", "value": "-v=4"})
    assert found[f"{container}.env[HTTP_PROXY]"][0] == "proxy"
    assert found[f"{container}.image"] == ("CSV", "quarterdeck")
    annotation = "spec.template.metadata.annotations[olm.targetNamespaces]"
    assert found[annotation] == ("OLM", "here")


def test_the_origins_fit_a_terminal(
    catalog: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field can be told from the others, and its source and value are there."""
    monkeypatch.setattr("quarterdeck.cli.output.terminal_columns", lambda: 80)
    config = [
        {"env": [{"name": "ARGS", "value": "-v=4"}], "annotations": {"example.com/a.b": "c"}},
        {"nodeSelector": {"disktype": "ssd"}, "env": [{"name": "RELEASE_VERSION", "value": "x"}]},
    ]
    file = subscription(tmp_path, config=config)
    done = run("subscription", "render", "-f", file, "--catalog", catalog, "--provenance")
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= 80
    title = "Deployment sample-operator: spec.template.spec.containers[sample-operator]"
    inside = [" ".join(line.split()) for line in lines[lines.index(title) :]]
    assert "env[ARGS] config[0] -v=4" in inside
    assert "env[RELEASE_VERSION] config[1] x 0.2.0" in inside
    assert 'nodeSelector config[1] {"disktype":"ssd"}' in inside
    assert [line.split() for line in lines if "example.com" in line] == [
        ["annotations[example.com/a.b]", "config[0]", "c"]
    ] * 2


def test_problems_are_told_in_full() -> None:
    problems = ("ConfigFailure: config[0].env[0]: there is\nno ConfigMap x", "ResolutionFailed: y")
    one = SubscriptionView(
        namespace="n", name="s", package="p", channel="", installed="", state="", problems=problems
    )
    first, row, _, *told = views_text([one, replace(one, problems=())]).splitlines()[1:]
    assert first.split()[-2:] == ["ConfigFailure,", "ResolutionFailed"]
    assert row.split()[-1] == "-"
    assert told == [
        "n/s: ConfigFailure: config[0].env[0]: there is no ConfigMap x",
        "n/s: ResolutionFailed: y",
    ]


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ({"package": "none"}, 2, "no package 'none' in the catalog; it has sample-operator"),
        ({"channel": "beta"}, 2, "no channel 'beta'; the package has alpha"),
        ({"startingCSV": "x"}, 2, "no version 'x'"),
        (
            {"config": [{"selector": {"matchLabels": {"olm.cahash": "123"}}}]},
            1,
            "config[0]: No operator pods found matching selector.",
        ),
        ({"config": [{"env": 7}]}, 2, "spec.config[0].env: a whole number, not a list"),
        ({"config": [{"env": [{"name": ["A"]}]}]}, 2, "env[0].name: a list, not text"),
        ({"config": [{"enw": []}]}, 0, "warning: "),
        ({"config": [{"env": None, "nodeSelector": None}]}, 0, "kind: Deployment"),
    ],
)
def test_what_cannot_be_rendered(
    catalog: Path, tmp_path: Path, spec: dict[str, Any], code: int, words: str
) -> None:
    file = subscription(tmp_path, **spec)
    done = run("subscription", "render", "-f", file, "--catalog", catalog)
    assert (done.exit_code, words in done.output) == (code, True), done.output


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("metadata/annotations.yaml", "annotations: [a]", "annotations in its metadata are no map"),
        (
            "manifests/sample-operator.clusterserviceversion.yaml",
            "{kind: ClusterServiceVersion, metadata: {name: x}, spec: y}",
            "has no metadata or no spec",
        ),
    ],
)
def test_a_bundle_directory_that_is_none_is_named(
    tmp_path: Path, file: str, text: str, words: str
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(DOCS / "examples" / "bundles" / "sample-operator" / "0.1.0", bundle)
    (bundle / file).write_text(text)
    done = run("catalog", "build", bundle, "--to", tmp_path / "catalog")
    assert (done.exit_code, words in done.output) == (2, True), done.output


def test_a_catalog_with_an_error_is_refused(catalog: Path, tmp_path: Path) -> None:
    (catalog / "broken.yaml").write_text("schema: olm.package\nname: p\ndefaultChannel: x\n")
    done = run("catalog", "lint", catalog)
    assert done.exit_code == 1
    assert (
        "error: broken.yaml: olm.package p: the default channel 'x' does not exist" in done.output
    )
    render = run("subscription", "render", "-f", subscription(tmp_path), "--catalog", catalog)
    assert render.exit_code == 2
    again = run("catalog", "build", DOCS / "examples" / "bundles", "--to", catalog)
    assert (again.exit_code, "is not empty" in again.output) == (2, True)


ETCD = "etcd.database.coreos.com"
CONVERTED = "apiVersion v1beta1 became v1, without a schema, any content stays allowed"
NO_TYPE = (
    "CustomResourceDefinition alertmanagers.monitoring.coreos.com is v1beta1 and cannot be "
    "converted: openAPIV3Schema.spec.containers[].env[].valueFrom.resourceFieldRef.divisor has no "
    "type"
)


def converted(*plurals: str) -> str:
    return "converted: " + "; ".join(f"{one}.{ETCD}: {CONVERTED}" for one in plurals)


def test_the_old_definitions_of_real_bundles_are_converted_or_reported(tmp_path: Path) -> None:
    """The output says of each bundle what was converted, or why it cannot be installed here."""
    if not FIXTURES.is_dir():
        pytest.skip("the bundles are not beside this clone")
    bundles = [FIXTURES / "bundles" / name for name in ("etcd", "prometheus")]
    done = run("catalog", "build", *bundles, "--to", tmp_path / "catalog", "-o", "json")
    assert done.exit_code == 0, done.output
    found = {one["bundle"]: one for one in json.loads(done.output)["bundles"]}
    three = converted("etcdbackups", "etcdclusters", "etcdrestores")
    assert {name: (one["installable"], one["note"]) for name, one in found.items()} == {
        "etcdoperator-community.v0.6.1": (True, converted("etcdclusters")),
        "etcdoperator.v0.9.0": (True, three),
        "etcdoperator.v0.9.2": (True, three),
        "etcdoperator.v0.9.4": (True, three),
        "prometheusoperator.0.27.0": (False, NO_TYPE),
        "prometheusoperator.0.32.0": (False, NO_TYPE),
        "prometheusoperator.0.37.0": (
            False,
            "its ClusterServiceVersion does not own thanosrulers.monitoring.coreos.com",
        ),
        "prometheusoperator.0.47.0": (True, ""),
        "prometheusoperator.v0.65.1": (True, ""),
    }
    told = run("catalog", "lint", tmp_path / "catalog").output.splitlines()
    assert f"prometheusoperator.0.27.0: {NO_TYPE}" in told
    assert f"etcdoperator.v0.9.0: {three}" in told


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["$(ARGS)", "run"], ["run"]),
        (["-v=4", "run", "--operator=sample"], ["--verbosity=4", "run", "--operator=sample"]),
        (["--v=2", "run", "$(X)"], ["--verbosity=2", "run", "$(X)"]),
        (["-v", "4", "run"], ["-v", "4", "run"]),
        (["run", "-v=4"], ["run", "-v=4"]),
        ([], []),
    ],
)
def test_arguments_as_a_pod_has_them(given: list[str], read: list[str]) -> None:
    assert arguments(given) == read
