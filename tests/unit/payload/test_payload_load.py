"""Directories to payloads: order, substitutions, and everything that can be wrong with files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.payload.load import (
    MAX_PROBLEMS,
    UNKNOWN_IMAGE,
    Reading,
    load_payload,
    read_payload,
    run_level_and_component,
)
from quarterdeck.payload.model import KnownRelease, PayloadError

GOOD = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
"""


def write(directory: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory


def read(directory: Path, release: KnownRelease | None = None) -> Reading:
    return read_payload([directory], release=release, profile="some-profile")


def names(reading: Reading) -> list[str]:
    assert not reading.problems
    return [manifest.identity.name for manifest in reading.payload.manifests]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("0000_30_machine-api_01_x.yaml", (30, "machine-api"), id="the usual form"),
        pytest.param("0000_05_a_b.yaml", (5, "a"), id="the run level is a number"),
        pytest.param("0000_50_olm_00-x.yaml", (50, "olm"), id="the rest may be anything"),
        pytest.param("0000_30_machine-api.yaml", (None, ""), id="no rest"),
        pytest.param("0001_30_a_b.yaml", (None, ""), id="another beginning"),
        pytest.param("x.yaml", (None, ""), id="any other name"),
    ],
)
def test_run_level_and_component(file: str, expected: tuple[int | None, str]) -> None:
    assert run_level_and_component(file) == expected


def test_order_is_run_level_then_component_then_file_and_other_names_last(tmp_path: Path) -> None:
    files = [
        "0000_100_a_1.yaml",
        "0000_20_b_1.yaml",
        "0000_20_a_2.yml",
        "0000_20_a_1.json",
        "aaa.yaml",
        "0000_3_z_1.yaml",
    ]
    text = '{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{}"}}}}'
    write(tmp_path, {name: text.format(name) for name in files})
    assert names(read(tmp_path)) == [
        "0000_3_z_1.yaml",
        "0000_20_a_1.json",
        "0000_20_a_2.yml",
        "0000_20_b_1.yaml",
        "0000_100_a_1.yaml",
        "aaa.yaml",
    ]


def test_component_directories_are_one_payload(tmp_path: Path) -> None:
    """Directories one below are read as one; deeper ones, hidden ones and other files are not."""
    write(
        tmp_path,
        {
            "b/0000_10_b_1.yaml": GOOD.format(name="second"),
            "a/0000_90_a_1.yaml": GOOD.format(name="third"),
            "0000_00_c_1.yaml": GOOD.format(name="first"),
            "a/deep/0000_00_a_1.yaml": GOOD.format(name="deep"),
            ".hidden/0000_00_a_1.yaml": GOOD.format(name="hidden"),
            "README.md": "not a manifest",
        },
    )
    reading = read(tmp_path)
    assert names(reading) == ["first", "second", "third"]
    assert reading.payload.too_deep == ("a/deep/0000_00_a_1.yaml",)


def test_several_directories_are_one_payload_and_keep_their_names(tmp_path: Path) -> None:
    write(tmp_path / "one", {"0000_10_a_1.yaml": GOOD.format(name="x")})
    write(tmp_path / "two", {"0000_05_a_1.yaml": GOOD.format(name="y")})
    reading = read_payload([tmp_path / "one", tmp_path / "two"])
    assert [manifest.file for manifest in reading.payload.manifests] == [
        f"{tmp_path}/two/0000_05_a_1.yaml",
        f"{tmp_path}/one/0000_10_a_1.yaml",
    ]


def test_documents_keep_their_number_and_line(tmp_path: Path) -> None:
    text = GOOD.format(name="a") + "---\n# none\n---\n" + GOOD.format(name="b")
    write(tmp_path, {"x.yaml": text})
    manifests = read(tmp_path).payload.manifests
    assert [(m.document, m.line, m.place) for m in manifests] == [
        (1, 1, "x.yaml:1"),
        (3, 8, "x.yaml:8"),
    ]


def test_one_broken_manifest_is_named_with_file_document_and_line(tmp_path: Path) -> None:
    broken = GOOD.format(name="a") + "---\n" + "apiVersion: v1\nkind: [\n"
    write(tmp_path, {"good.yaml": GOOD.format(name="g"), "0000_10_x_1.yaml": broken})
    with pytest.raises(PayloadError) as raised:
        load_payload(tmp_path, release=KnownRelease(), profile="p")
    (problem,) = raised.value.problems
    assert (problem.file, problem.document, problem.line) == ("0000_10_x_1.yaml", 2, 8)
    assert "0000_10_x_1.yaml:8 (document 2): not YAML" in str(raised.value)


def test_two_broken_manifests_are_both_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.yaml": "a: [\n",
            "b.yaml": GOOD.format(name="fine") + "---\nkind: 'x\n---\nkind: Y\n",
            "c.json": "{",
            "d.yaml": GOOD.format(name="good"),
        },
    )
    reading = read(tmp_path)
    places = [(problem.file, problem.document) for problem in reading.problems]
    assert places == [("a.yaml", 1), ("b.yaml", 2), ("b.yaml", 3), ("c.json", 1)]
    assert [m.identity.name for m in reading.payload.manifests] == ["fine", "good"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param("- a", "not a Kubernetes object", id="a list"),
        pytest.param("just text", "not a Kubernetes object", id="a text"),
        pytest.param("kind: A\nmetadata: {name: x}", "no apiVersion", id="no apiVersion"),
        pytest.param("apiVersion: v1\nkind: 3", "no kind", id="a kind that is a number"),
        pytest.param("apiVersion: v1\nkind: A", "no metadata", id="no metadata"),
        pytest.param("apiVersion: v1\nkind: A\nmetadata: {}", "no metadata.name", id="no name"),
        pytest.param(
            "apiVersion: v1\nkind: A\nmetadata: {name: x, namespace: 1}",
            "metadata.namespace",
            id="a namespace that is a number",
        ),
        pytest.param(
            "apiVersion: v1\nkind: A\nmetadata: {name: x, annotations: [a]}",
            "metadata.annotations",
            id="annotations that are a list",
        ),
        pytest.param("apiVersion: v1\nkind: List\nitems: []", "a List", id="a list of objects"),
    ],
)
def test_a_document_that_is_no_object(tmp_path: Path, document: str, message: str) -> None:
    write(tmp_path, {"x.yaml": document})
    (problem,) = read(tmp_path).problems
    assert message in problem.message
    assert problem.line == 1


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  template:
    spec:
      containers:
      - image: placeholder/one
        env:
        - {name: RELEASE_VERSION, value: 0.0.1-snapshot}
        - {name: OPERATOR_IMAGE_VERSION, value: 0.0.1-snapshot}
        - {name: RELEASE_VERSION, value: 0.0.1-snapshot-kubernetes}
        - {name: RELEASE_VERSION, value: "4.1"}
"""


def test_the_version_replaces_the_snapshot_in_release_version_only(tmp_path: Path) -> None:
    write(tmp_path, {"d.yaml": DEPLOYMENT})
    (manifest,) = read(tmp_path, KnownRelease(version="4.7.0")).payload.manifests
    (container,) = manifest.object["spec"]["template"]["spec"]["containers"]
    values = [variable["value"] for variable in container["env"]]
    assert values == ["4.7.0", "0.0.1-snapshot", "4.7.0", "4.1"]


def test_the_version_replaces_the_snapshot_in_cluster_operators(tmp_path: Path) -> None:
    text = (
        "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: x}\n"
        "status:\n  versions:\n"
        "  - {name: operator, version: 0.0.1-snapshot}\n"
        "  - {name: kube, version: 0.0.1-snapshot-kube}\n"
        "  - {name: other, version: 1.2.3}\n"
    )
    write(tmp_path, {"c.yaml": text})
    (manifest,) = read(tmp_path, KnownRelease(version="4.7.0")).payload.manifests
    versions = [operand["version"] for operand in manifest.object["status"]["versions"]]
    assert versions == ["4.7.0", "4.7.0", "1.2.3"]


def test_release_metadata_says_version_and_previous(tmp_path: Path) -> None:
    metadata = '{"kind": "cincinnati-metadata-v0", "version": "4.6.1", "previous": ["4.6.0"]}'
    write(tmp_path, {"release-metadata": metadata, "d.yaml": DEPLOYMENT})
    reading = read(tmp_path)
    assert reading.payload.release == KnownRelease(version="4.6.1", previous=("4.6.0",))
    assert "4.6.1" in str(reading.payload.manifests[0].object)


def test_without_a_version_the_snapshot_stays(tmp_path: Path) -> None:
    write(tmp_path, {"d.yaml": DEPLOYMENT})
    assert "'0.0.1-snapshot-kubernetes'" in str(read(tmp_path).payload.manifests[0].object)


def references(**images: str) -> str:
    tags = [f"  - {{name: {name}, from: {{name: {image}}}}}" for name, image in images.items()]
    return "kind: ImageStream\napiVersion: image.openshift.io/v1\nspec:\n  tags:\n" + "\n".join(
        tags
    )


def test_images_are_replaced_wherever_they_stand_as_a_whole(tmp_path: Path) -> None:
    text = GOOD.format(name="x") + (
        "data:\n"
        '  images.json: \'{"a": "placeholder/one", "b": "placeholder/one-more"}\'\n'
        "  c: my.placeholder/one\n"
        "  d: placeholder/one@sha256:0\n"
    )
    write(
        tmp_path,
        {
            "part/image-references": references(one="placeholder/one", more="placeholder/one-more"),
            "part/x.yaml": text,
            "part/d.yaml": DEPLOYMENT,
        },
    )
    release = KnownRelease(images={"one": "real/one@sha256:1", "more": "real/more@sha256:2"})
    deployment, config = read(tmp_path, release).payload.manifests
    (container,) = deployment.object["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "real/one@sha256:1"
    assert config.object["data"] == {
        "images.json": '{"a": "real/one@sha256:1", "b": "real/more@sha256:2"}',
        "c": "my.placeholder/one",
        "d": "placeholder/one@sha256:0",
    }


def test_a_list_above_the_component_says_where_its_images_are(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "image-references": references(one="registry/real@sha256:1"),
            "part/image-references": references(one="placeholder/one"),
            "part/d.yaml": DEPLOYMENT,
            "other/d.yaml": DEPLOYMENT,
        },
    )
    images = {
        m.directory: m.object["spec"]["template"]["spec"]["containers"][0]["image"]
        for m in read(tmp_path).payload.manifests
    }
    assert images == {"part": "registry/real@sha256:1", "other": "placeholder/one"}


def test_bad_image_references_and_metadata_are_problems(tmp_path: Path) -> None:
    write(tmp_path, {"image-references": "kind: 3\n", "release-metadata": '{"version": 4}'})
    files = [problem.file for problem in read(tmp_path).problems]
    assert files == ["image-references", "release-metadata"]


OWN = "0000_00_cluster-version-operator_1.yaml"


def test_template_fields_of_our_own_manifests_are_replaced(tmp_path: Path) -> None:
    text = GOOD.format(name="x") + (
        "data:\n"
        "  image: '{{.ReleaseImage}}'\n"
        "  profile: {{ .ClusterProfile }}\n"
        '  alert: value {{ "{{ $labels.name }}" }} of {{ "{{ \\"x\\" | query }}"}} is {{ `raw` }}\n'
    )
    write(tmp_path, {OWN: text})
    (manifest,) = read(tmp_path, KnownRelease(image="img:1")).payload.manifests
    assert manifest.object["data"] == {
        "image": "img:1",
        "profile": "some-profile",
        "alert": 'value {{ $labels.name }} of {{ "x" | query }} is raw',
    }
    (manifest,) = read(tmp_path).payload.manifests
    assert manifest.object["data"]["image"] == UNKNOWN_IMAGE


@pytest.mark.parametrize(
    "template",
    ["{{.Other}}", "{{ if x }}", "{{- .ReleaseImage }}", '{{ "\\q" }}', "{{", '{{ "open }}'],
)
def test_any_other_template_there_is_an_error_with_its_line(tmp_path: Path, template: str) -> None:
    text = GOOD.format(name="a") + "---\n" + GOOD.format(name="b") + f"data:\n  x: {template}\n"
    write(tmp_path, {OWN: text})
    (problem,) = read(tmp_path).problems
    assert (problem.document, problem.line) == (2, 11)
    assert template[:6] in problem.message


def test_in_other_manifests_braces_are_text(tmp_path: Path) -> None:
    text = GOOD.format(name="x") + "data:\n  alert: 'is {{ $value }} of {{.ReleaseImage}}'\n"
    write(tmp_path, {"0000_90_monitoring_1.yaml": text})
    (manifest,) = read(tmp_path, KnownRelease(image="img:1")).payload.manifests
    assert manifest.object["data"]["alert"] == "is {{ $value }} of {{.ReleaseImage}}"


def test_a_directory_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    (problem,) = read(tmp_path / "nothing").problems
    assert "No such file" in problem.message


def test_links_within_the_payload_are_followed_as_in_a_mounted_config_map(tmp_path: Path) -> None:
    write(tmp_path, {"..2024/x.yaml": GOOD.format(name="x")})
    (tmp_path / "..data").symlink_to("..2024")
    (tmp_path / "x.yaml").symlink_to("..data/x.yaml")
    assert names(read(tmp_path)) == ["x"]


def hostile_link(directory: Path) -> None:
    (directory.parent / "secret.yaml").write_text(GOOD.format(name="secret"))
    (directory / "x.yaml").symlink_to(directory.parent / "secret.yaml")


def hostile_directory_link(directory: Path) -> None:
    write(directory.parent / "elsewhere", {"x.yaml": GOOD.format(name="secret")})
    (directory / "part").symlink_to(directory.parent / "elsewhere")


def hostile_loop(directory: Path) -> None:
    (directory / "x.yaml").symlink_to("x.yaml")


def hostile_pipe(directory: Path) -> None:
    os.mkfifo(directory / "x.yaml")


def hostile_size(directory: Path) -> None:
    with (directory / "x.yaml").open("wb") as file:
        for _ in range(50):
            file.write(b"# padding \n" * 95_326)


def hostile_total(directory: Path) -> None:
    content = b"#" * (4 << 20)
    for number in range(17):
        (directory / f"{number}.yaml").write_bytes(content)


def hostile_bomb(directory: Path) -> None:
    lines = ["a: &a [" + ", ".join("x" * 10) + "]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 10) + "]")
    write(directory, {"x.yaml": "\n".join(lines)})


def hostile_bombs(directory: Path) -> None:
    """Each document is within its limit; the version in it makes a copy of each alias."""
    lines = ["a: &a [{}, {}, {}, {}, {}, {}, {}, {}, {}, {}] # 0.0.1-snapshot"]
    for name, before in zip("bcde", "abcd", strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 10) + "]")
    bomb = "\n".join(lines)
    documents = (f"{GOOD.format(name=f'x{number}')}{bomb}\n" for number in range(900))
    metadata = "version: 1.0.0"
    write(directory, {"x.yaml": "---\n".join(documents), "release-metadata": metadata})


def hostile_problems(directory: Path) -> None:
    for number in range(10):
        (directory / f"{number}.yaml").write_bytes(b"---\na\n" * 1000)


def hostile_images(directory: Path) -> None:
    tags = [{"name": f"i{n}", "from": {"name": f"r.test/i{n}"}} for n in range(40_000)]
    content = json.dumps({"kind": "ImageStream", "spec": {"tags": tags}})
    write(directory, {"image-references": content})


def hostile(name: str, content: bytes) -> object:
    return lambda directory: (directory / name).write_bytes(content)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(hostile_bomb, "aliases expanded", id="a bomb of aliases"),
        pytest.param(hostile_bombs, "more than 2,000,000 values", id="many small bombs"),
        pytest.param(hostile_problems, "not a Kubernetes object", id="thousands of problems"),
        pytest.param(hostile_images, "40000 images, more than 2000", id="thousands of images"),
        pytest.param(hostile_size, "larger than 4 MiB", id="a file of 50 MB"),
        pytest.param(hostile_total, "larger than 64 MiB", id="large files that add up"),
        pytest.param(hostile_link, "leads out of the payload", id="a link out of the directory"),
        pytest.param(hostile_directory_link, "link to a directory", id="a link to a directory"),
        pytest.param(hostile_loop, "cannot be read", id="a link to itself"),
        pytest.param(hostile_pipe, "not a regular file", id="a pipe"),
        pytest.param(hostile("a\nb.yaml", b"a"), r"a\nb.yaml", id="a name with a newline"),
        pytest.param(hostile("a\x1b[2J.yaml", b"a"), r"a\x1b", id="a name with an escape"),
        pytest.param(hostile("x.yaml", b"a: 1\nb: \xff\n"), "x.yaml:2", id="not UTF-8"),
        pytest.param(hostile("x.yaml", b"[" * 4_000_000), "100 deep", id="millions of brackets"),
        pytest.param(hostile("x.yaml", b"- " * 2_000_000), "100 deep", id="millions of dashes"),
        pytest.param(hostile("x.json", b"[" * 4_000_000), "100 deep", id="deep JSON"),
        pytest.param(
            hostile("x.yaml", b"".join(b"k%d: v\n" % i for i in range(300_000))),
            "200,000 values",
            id="hundreds of thousands of keys",
        ),
        pytest.param(hostile("x.yaml", b"a: 1\na: 2\n"), "'a' twice", id="a key twice"),
        pytest.param(
            hostile("x.yaml", b"".join(b"%%TAG !a%d! tag:x\n" % i for i in range(200_000))),
            "directive",
            id="directives that libyaml compares with one another",
        ),
    ],
)
def test_a_hostile_payload_is_refused_in_bounded_time_and_memory(
    tmp_path: Path, make: object, message: str
) -> None:
    """The command line ends by itself with 300 MB of address space and says what is wrong."""
    directory = tmp_path / "payload"
    directory.mkdir()
    assert callable(make)
    make(directory)
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20));"
        "sys.argv = ['quarterdeck', 'payload', 'lint', sys.argv[1]];"
        "from quarterdeck.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, str(directory)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stdout


def test_reading_ends_after_a_thousand_problems(tmp_path: Path) -> None:
    hostile_problems(tmp_path)
    write(tmp_path, {"z.yaml": GOOD.format(name="z")})
    reading = read(tmp_path)
    assert len(reading.problems) == MAX_PROBLEMS + 1
    assert reading.problems[-1].message == "more problems are not looked for"
    assert reading.payload.manifests == ()


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.yaml", os.O_CREAT | os.O_WRONLY))
    (problem,) = read(tmp_path).problems
    assert problem.file == "\\udcff.yaml"
