"""Every rule of lint: what it finds, where, and what it leaves alone."""

from pathlib import Path

import pytest

from quarterdeck.payload.findings import Finding, Severity
from quarterdeck.payload.lint import lint
from quarterdeck.payload.load import read_payload
from quarterdeck.payload.locate import with_lines

INCLUDE = "include.release.openshift.io/self-managed-high-availability"
RELEASE = "release.openshift.io"


def findings(directory: Path, files: dict[str, str], **options: list[str]) -> list[Finding]:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return list(with_lines(lint(read_payload([directory]), **options), [directory]))


def config_map(name: str, *annotations: str) -> str:
    lines = [
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata:",
        f"  name: {name}",
        "  annotations:",
        f'    {INCLUDE}: "true"',
        *(f"    {annotation}" for annotation in annotations),
    ]
    return "\n".join(lines) + "\n"


def crd(feature_sets: str | None, profile: str = INCLUDE) -> str:
    annotation = f"\n    {RELEASE}/feature-set: {feature_sets}" if feature_sets else ""
    return (
        "apiVersion: apiextensions.k8s.io/v1\n"
        "kind: CustomResourceDefinition\n"
        "metadata:\n  name: things.example.test\n"
        f'  annotations:\n    {profile}: "true"{annotation}\n'
        "spec:\n  group: example.test\n  names:\n    kind: Thing\n"
    )


def thing(feature_sets: str | None, name: str = "cluster") -> str:
    annotation = f"\n    {RELEASE}/feature-set: {feature_sets}" if feature_sets else ""
    return (
        "apiVersion: example.test/v1alpha1\n"
        "kind: Thing\n"
        f'metadata:\n  name: {name}\n  annotations:\n    {INCLUDE}: "true"{annotation}\n'
    )


@pytest.mark.parametrize(
    ("annotation", "code", "value", "remedy"),
    [
        pytest.param(
            f"{RELEASE}/feature-set: Default,TechPreview",
            "unknown-feature-set",
            "TechPreview",
            "did you mean TechPreviewNoUpgrade?",
            id="an unknown feature set",
        ),
        pytest.param(
            f"{RELEASE}/feature-gate: Unheard",
            "unknown-gate",
            "Unheard",
            "--gate",
            id="an unknown gate",
        ),
        pytest.param(
            f'{RELEASE}/feature-gate: " , "', "bad-annotation", " , ", "name one", id="no gate"
        ),
        pytest.param(
            "capability.openshift.io/name: MachineAPI+Consol",
            "unknown-capability",
            "Consol",
            "did you mean Console?",
            id="an unknown capability",
        ),
        pytest.param(
            'include.release.openshift.io/hypershft: "true"',
            "unknown-profile",
            "hypershft",
            "did you mean hypershift?",
            id="an unknown profile",
        ),
        pytest.param(
            "include.release.openshift.io/hypershift: 'True'",
            "bad-annotation",
            "True",
            'write "true"',
            id="a value that has no effect",
        ),
        pytest.param(
            "exclude.release.openshift.io/some-cluster: 'yes'",
            "bad-annotation",
            "yes",
            'write "true"',
            id="an exclude that has no effect",
        ),
        pytest.param(
            "include.release.openshift.io/hypershift: true",
            "annotation-not-text",
            "True",
            'quote it: "true"',
            id="a boolean",
        ),
        pytest.param("other: 3", "annotation-not-text", "3", 'quote it: "3"', id="a number"),
        pytest.param(
            f"{RELEASE}/delete: 'false'", "bad-annotation", "false", "remove it", id="delete: false"
        ),
        pytest.param(
            f"{RELEASE}/create-only: 'yes'", "bad-annotation", "yes", "remove it", id="create-only"
        ),
        pytest.param(
            f"{RELEASE}/major-version: '4'",
            "bad-annotation",
            "4",
            "remove it",
            id="a major version on a kind that has none",
        ),
    ],
)
def test_a_bad_annotation(
    tmp_path: Path, annotation: str, code: str, value: str, remedy: str
) -> None:
    found = findings(tmp_path, {"a.yaml": config_map("a", annotation)})
    (finding,) = found
    assert finding.code == code
    assert (finding.place, finding.document) == ("a.yaml:7", 1)
    assert finding.path == ("metadata", "annotations", annotation.split(":")[0])
    assert finding.value == value
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(f"{RELEASE}/feature-set: ''", id="an empty feature set is Default"),
        pytest.param(
            f"{RELEASE}/feature-gate: ClusterVersionOperatorConfiguration,-Known",
            id="gates of the release and of the command line",
        ),
        pytest.param("include.release.openshift.io/hypershift: 'false'", id="included by false"),
        pytest.param("exclude.release.openshift.io/anything: 'true'", id="any cluster id"),
        pytest.param(f"{RELEASE}/create-only: 'true'", id="create-only"),
        pytest.param("capability.openshift.io/name: Build+Console", id="known capabilities"),
    ],
)
def test_a_good_annotation(tmp_path: Path, annotation: str) -> None:
    files = {"a.yaml": config_map("a", annotation)}
    assert findings(tmp_path, files, gates=["Known"]) == []


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        pytest.param(
            [f"{RELEASE}/feature-set: OKD", f"{RELEASE}/feature-gate: Known"],
            "set-and-gate",
            id="by feature set and by gate",
        ),
        pytest.param(
            [f"{RELEASE}/create-only: 'true'", f"{RELEASE}/delete: 'true'"],
            "create-and-delete",
            id="to be created and deleted",
        ),
        pytest.param(
            [f"{RELEASE}/feature-gate: Known,-Known"], "bad-annotation", id="a gate on and off"
        ),
    ],
)
def test_annotations_that_contradict_each_other(
    tmp_path: Path, annotations: list[str], code: str
) -> None:
    files = {"a.yaml": config_map("a", *annotations)}
    (finding,) = findings(tmp_path, files, gates=["Known"])
    assert finding.code == code
    assert finding.severity is Severity.ERROR


def test_a_major_version_that_is_no_number(tmp_path: Path) -> None:
    text = crd(None).replace("spec:", f"    {RELEASE}/major-version: four\nspec:", 1)
    (finding,) = findings(tmp_path, {"a.yaml": text})
    assert (finding.code, finding.value, finding.line) == ("bad-annotation", "four", 7)


def test_unreadable_files_are_errors_and_do_not_hide_the_rest(tmp_path: Path) -> None:
    bad = config_map("x", "other: 1")
    found = findings(tmp_path, {"a.yaml": "a: [\n", "b.yaml": "- x\n", "c.yaml": bad})
    assert [(finding.code, finding.place) for finding in found] == [
        ("unreadable", "a.yaml:2"),
        ("unreadable", "b.yaml:1"),
        ("annotation-not-text", "c.yaml:7"),
    ]


def test_a_duplicate_is_told_with_the_clusters_that_get_both(tmp_path: Path) -> None:
    found = findings(
        tmp_path,
        {
            "a.yaml": config_map("same", f"{RELEASE}/feature-set: OKD,Default"),
            "b.yaml": config_map("same", f"{RELEASE}/feature-set: Default,CustomNoUpgrade"),
        },
    )
    (finding,) = found
    assert (finding.code, finding.place, finding.value) == (
        "duplicate-object",
        "b.yaml:4",
        "ConfigMap/same",
    )
    assert finding.message == ("also in a.yaml:1, both for self-managed-high-availability: Default")


def test_the_same_object_in_two_versions_of_its_group_is_a_duplicate(tmp_path: Path) -> None:
    text = thing(None)
    found = findings(tmp_path, {"a.yaml": text, "b.yaml": text.replace("v1alpha1", "v1")})
    assert [finding.code for finding in found] == ["duplicate-object"]
    assert "all feature sets" in found[0].message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("feature-set: OKD", "feature-set: Default", id="other feature sets"),
        pytest.param("feature-gate: Known", "feature-gate: -Known", id="a gate on and off"),
    ],
)
def test_the_same_object_for_different_clusters_is_no_duplicate(
    tmp_path: Path, first: str, second: str
) -> None:
    files = {
        "a.yaml": config_map("same", f"{RELEASE}/{first}"),
        "b.yaml": config_map("same", f"{RELEASE}/{second}"),
    }
    assert findings(tmp_path, files, gates=["Known"]) == []


def test_a_duplicate_only_where_unknown_gates_are_on_says_so(tmp_path: Path) -> None:
    files = {
        "a.yaml": config_map("same", f"{RELEASE}/feature-gate: A"),
        "b.yaml": config_map("same", f"{RELEASE}/feature-gate: B"),
    }
    (finding,) = findings(tmp_path, files, gates=["A", "B"])
    assert finding.message.endswith("all feature sets (if unknown gates are on)")


FEATURE_GATE = """\
apiVersion: config.openshift.io/v1
kind: FeatureGate
metadata:
  name: cluster
  annotations:
    include.release.openshift.io/self-managed-high-availability: {include}
    release.openshift.io/feature-set: {feature_set}
status:
  featureGates:
  - version: 4.7.0
    enabled: [{{name: {on}}}]
    disabled: [{{name: {off}}}]
"""


def test_gates_come_from_the_feature_gates_of_the_payload(tmp_path: Path) -> None:
    """A is on only where B is off, so that the two never meet, and both are known."""
    only = "false-except-for-the-config-operator"
    sets = ["Default", "OKD", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade"]
    files = {
        f"gate-{number}.yaml": FEATURE_GATE.format(
            include=only, feature_set=name, on="AB"[number % 2], off="BA"[number % 2]
        )
        for number, name in enumerate(sets)
    }
    files |= {
        "a.yaml": config_map("same", f"{RELEASE}/feature-gate: A"),
        "b.yaml": config_map("same", f"{RELEASE}/feature-gate: B"),
    }
    assert [f for f in findings(tmp_path, files) if f.code != "unknown-gate"] == []


def test_a_crd_without_its_object_in_some_feature_set(tmp_path: Path) -> None:
    """The slip of a real release: CustomNoUpgrade has the CRD, but no object."""
    (finding,) = findings(
        tmp_path,
        {
            "0000_00_x_1.crd.yaml": crd("CustomNoUpgrade,DevPreviewNoUpgrade,TechPreviewNoUpgrade"),
            "0000_00_x_2-dev.yaml": thing("DevPreviewNoUpgrade"),
            "0000_00_x_2-tech.yaml": thing("TechPreviewNoUpgrade"),
        },
    )
    assert (finding.severity, finding.code) == (Severity.WARNING, "crd-without-cr")
    assert (finding.place, finding.value) == (
        "0000_00_x_1.crd.yaml:7",
        "Thing.example.test/cluster",
    )
    assert "for self-managed-high-availability: CustomNoUpgrade;" in finding.message
    assert "0000_00_x_2-dev.yaml:1, 0000_00_x_2-tech.yaml:1" in finding.message


def test_an_object_without_its_crd_in_some_feature_set(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, {"a.yaml": crd("OKD"), "b.yaml": thing("OKD,Default")})
    assert (finding.severity, finding.code) == (Severity.ERROR, "cr-without-crd")
    assert (finding.place, finding.value) == ("b.yaml:7", "Thing.example.test/cluster")
    assert finding.message.endswith("for self-managed-high-availability: Default")


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"a.yaml": crd("OKD"), "b.yaml": thing("OKD")}, id="both in one feature set"),
        pytest.param({"a.yaml": crd("OKD")}, id="a CRD that has no objects here"),
        pytest.param(
            {"a.yaml": crd(None), "b.yaml": thing("OKD")},
            id="an object of a feature, of a kind that is always there",
        ),
        pytest.param(
            {
                "a.yaml": crd("OKD,Default"),
                "b.yaml": crd("CustomNoUpgrade,DevPreviewNoUpgrade,TechPreviewNoUpgrade"),
                "c.yaml": thing("OKD"),
            },
            id="a CRD that is always there, in two variants",
        ),
        pytest.param(
            {
                "a.yaml": crd("OKD")
                + "---\n"
                + crd("Default,OKD", "include.release.openshift.io/hypershift"),
                "b.yaml": thing("OKD"),
            },
            id="a profile that has the CRD and never the object",
        ),
    ],
)
def test_crds_and_objects_that_go_together(tmp_path: Path, files: dict[str, str]) -> None:
    assert findings(tmp_path, files) == []


REFERENCES = """\
kind: ImageStream
apiVersion: image.openshift.io/v1
spec:
  tags:
  - name: listed
    from: {kind: DockerImage, name: "example.test/listed:1"}
"""
POD = """\
spec:
  template:
    spec:
      initContainers:
      - image: example.test/listed:1
      containers:
      - name: x
        image: example.test/unlisted:1
        env:
        - name: OTHER
          value: example.test/ignored:1
        - name: PROXY_IMAGE
          value: example.test/variable:1
"""


def test_images_that_are_not_listed(tmp_path: Path) -> None:
    deployment = config_map("d").replace("v1\nkind: ConfigMap", "apps/v1\nkind: Deployment") + POD
    images = config_map("i") + (
        "data:\n  images.json: |\n    "
        '{"a": "example.test/listed:1", "b": "example.test/mapped:1"}\n'
    )
    found = findings(
        tmp_path,
        {
            "part/image-references": REFERENCES,
            "part/d.yaml": deployment,
            "part/i.yaml": images,
            "other/d.yaml": deployment.replace("name: d", "name: e"),
        },
    )
    assert {finding.code for finding in found} == {"image-not-listed"}
    told = [(f.severity.value, f.place, f.field, f.value) for f in found]
    pod = "spec.template.spec"
    assert [entry for entry in told if entry[1].startswith("part")] == [
        ("error", "part/d.yaml:14", f"{pod}.containers[0].image", "example.test/unlisted:1"),
        (
            "warning",
            "part/d.yaml:19",
            f"{pod}.containers[0].env[1].value",
            "example.test/variable:1",
        ),
        ("warning", "part/i.yaml:8", "data[images.json]", "example.test/mapped:1"),
    ]
    assert len([entry for entry in told if entry[1].startswith("other")]) == 3


def test_the_images_of_the_release_are_listed_for_all_components(tmp_path: Path) -> None:
    deployment = config_map("d").replace("v1\nkind: ConfigMap", "apps/v1\nkind: Deployment") + (
        "spec: {template: {spec: {containers: [{image: 'example.test/listed:1'}]}}}\n"
    )
    files = {"image-references": REFERENCES, "part/d.yaml": deployment}
    files["part/image-references"] = REFERENCES.replace("listed", "own")
    assert findings(tmp_path, files) == []


def test_a_manifest_that_no_cluster_gets(tmp_path: Path) -> None:
    lost = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: lost\n"
    (finding,) = findings(tmp_path, {"a.yaml": config_map("a"), "b.yaml": lost})
    assert (finding.code, finding.place, finding.value) == (
        "never-included",
        "b.yaml:3",
        "ConfigMap/lost",
    )
    assert "there are no annotations" in finding.message


def test_a_payload_from_before_profiles_gives_one_finding(tmp_path: Path) -> None:
    old = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n"
    (finding,) = findings(tmp_path, {f"{name}.yaml": old.format(name) for name in "abc"})
    assert (finding.code, finding.value) == ("nothing-included", "3 manifests")


def test_files_that_are_too_deep_are_told(tmp_path: Path) -> None:
    found = findings(tmp_path, {"a.yaml": config_map("a"), "b/c/d.yaml": config_map("d")})
    assert [(finding.code, finding.place) for finding in found] == [("passed-over", "b/c/d.yaml")]


def test_a_directory_without_a_manifest_is_a_finding(tmp_path: Path) -> None:
    assert [one.code for one in findings(tmp_path, {})] == ["no-manifests"]


def test_a_namespace_that_nothing_creates_is_one_finding(tmp_path: Path) -> None:
    """Those of every cluster, and those of the payload, are none."""
    kinds = [("ConfigMap", "a", "mine"), ("Secret", "b", "mine"), ("Secret", "c", "kube-system")]
    kinds += [("Namespace", "ours", ""), ("Secret", "d", "ours")]
    text = "---\n".join(
        f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"
        + (f"  namespace: {namespace}\n" if namespace else "")
        + f'  annotations: {{{INCLUDE}: "true"}}\n'
        for kind, name, namespace in kinds
    )
    (found,) = findings(tmp_path, {"1.yaml": text})
    assert (found.code, found.value, found.document) == ("missing-namespace", "mine", 1)


def own_binding(role: str, name: str = "cvo", *annotations: str) -> str:
    lines = "".join(f"    {annotation}\n" for annotation in annotations)
    return (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n"
        f'metadata:\n  name: {name}\n  annotations:\n    {INCLUDE}: "true"\n{lines}'
        f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n"
        "subjects:\n- {kind: ServiceAccount, namespace: openshift-cluster-version,"
        " name: cluster-version-operator}\n"
    )


def test_a_release_that_takes_the_operators_own_rights_is_told_beforehand(tmp_path: Path) -> None:
    found = findings(tmp_path, {"1.yaml": own_binding("view")})
    assert [(one.code, one.field, one.value) for one in found] == [
        ("own-rights", "roleRef.name", "view")
    ]
    delete = f'{RELEASE}/delete: "true"'
    found = findings(tmp_path, {"1.yaml": own_binding("cluster-admin", "cvo", delete)})
    assert [one.code for one in found] == ["own-rights"]


@pytest.mark.parametrize(
    ("kind", "name", "rest", "code"),
    [
        ("apps/v1 Deployment", "cluster-version-operator", "spec: {replicas: 0}", "own-operator"),
        ("coordination.k8s.io/v1 Lease", "cluster-version-operator", "spec: {}", "own-operator"),
        ("rbac.authorization.k8s.io/v1 ClusterRole", "cluster-admin", "rules: []", "own-rights"),
    ],
)
def test_a_release_that_stops_the_operator_is_told_beforehand(
    tmp_path: Path, kind: str, name: str, rest: str, code: str
) -> None:
    version, _, kind = kind.partition(" ")
    namespace = "" if kind == "ClusterRole" else "openshift-cluster-version"
    text = (
        f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n"
        f'  namespace: "{namespace}"\n  annotations:\n    {INCLUDE}: "true"\n{rest}\n'
    )
    found = [one.code for one in findings(tmp_path, {"1.yaml": text})]
    assert [one for one in found if one != "missing-namespace"] == [code]


def test_a_second_binding_of_the_operator_may_be_to_any_role(tmp_path: Path) -> None:
    files = {"1.yaml": own_binding("view"), "2.yaml": own_binding("cluster-admin", "other")}
    assert findings(tmp_path, files) == []


@pytest.mark.parametrize(
    ("kind", "name", "namespace"),
    [
        pytest.param("v1 ConfigMap", "Upper", "ns", id="a capital"),
        pytest.param("v1 ConfigMap", "under_score", "ns", id="an underscore"),
        pytest.param("v1 ConfigMap", "x" * 254, "ns", id="too long"),
        pytest.param("v1 Namespace", "a.b", "", id="a namespace with a dot"),
        pytest.param("v1 ConfigMap", "x", "a.b", id="in a namespace with a dot"),
        pytest.param("rbac.authorization.k8s.io/v1 ClusterRole", "a/b", "", id="a slash in a role"),
        pytest.param("v1 ConfigMap", "x\\n", "ns", id="a line break"),
    ],
)
def test_names_that_the_server_would_refuse_are_told(
    tmp_path: Path, kind: str, name: str, namespace: str
) -> None:
    version, _, kind = kind.partition(" ")
    where = f"  namespace: {namespace}\n" if namespace else ""
    text = (
        f'apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: "{name}"\n{where}'
        f'  annotations: {{{INCLUDE}: "true"}}\n'
    )
    found = [one.code for one in findings(tmp_path, {"1.yaml": text})]
    assert [one for one in found if one != "missing-namespace"] == ["bad-name"]


def test_names_of_roles_may_have_colons(tmp_path: Path) -> None:
    text = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
        f'metadata:\n  name: system:a:B\n  annotations: {{{INCLUDE}: "true"}}\n'
    )
    assert findings(tmp_path, {"1.yaml": text}) == []
