"""What loading replaces: templates, images, versions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.payload.image_places import replace_plain_images
from quarterdeck.payload.substitute import (
    TemplateFault,
    image_pattern,
    render_template,
    replace_images,
    replace_versions,
)

FIELDS = {"ReleaseImage": "img:1", "ClusterProfile": "p"}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        pytest.param("a {{.ReleaseImage}} b", "a img:1 b", id="a field"),
        pytest.param("{{ .ClusterProfile }}{{.ClusterProfile}}", "pp", id="blanks do not matter"),
        pytest.param('{{ "{{ $x }}" }}', "{{ $x }}", id="braces between quotes"),
        pytest.param(r'{{ "say \"x\"\\" }}', 'say "x"\\', id="escapes between quotes"),
        pytest.param('{{"a"}}', "a", id="no blanks at all"),
        pytest.param('{{ `a \\ "b"` }}', 'a \\ "b"', id="raw text has no escapes"),
        pytest.param("} }} {", "} }} {", id="other braces are text"),
    ],
)
def test_template(text: str, rendered: str) -> None:
    assert render_template(text, FIELDS) == rendered


@pytest.mark.parametrize(
    ("text", "template"),
    [
        pytest.param("a\nb {{.Other}} c", "{{.Other}}", id="an unknown field"),
        pytest.param("a\n{{ range .x }}", "{{ range .x }}", id="a statement"),
        pytest.param('a\n{{ "\\x41" }}', '{{ "\\x41" }}', id="an escape that is not known"),
        pytest.param("a\n{{.ReleaseImage", "{{.ReleaseImage", id="one that does not end"),
    ],
)
def test_another_template_is_told_with_its_line(text: str, template: str) -> None:
    fault = render_template(text, FIELDS)
    assert fault == TemplateFault(2, template, ("ClusterProfile", "ReleaseImage"))


@given(before=st.text().filter(lambda t: "{" not in t), inside=st.text())
def test_text_between_quotes_comes_out_as_it_is(before: str, inside: str) -> None:
    escaped = inside.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert render_template(f'{before}{{{{ "{escaped}" }}}}', FIELDS) == before + inside


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        pytest.param("image: x/a", "image: REAL-A", id="at the end of the text"),
        pytest.param('"x/a","x/a:1"', '"REAL-A","REAL-A1"', id="the longest that fits"),
        pytest.param("x/a-b x/a/b x/a@sha", "x/a-b x/a/b x/a@sha", id="only as a whole"),
        pytest.param("y.x/a docker.io/x/a", "y.x/a docker.io/x/a", id="not the end of another"),
        pytest.param("x.a", "x.a", id="a dot is a dot"),
    ],
)
def test_images(text: str, replaced: str) -> None:
    images = {"x/a": "REAL-A", "x/a:1": "REAL-A1"}
    assert replace_images(text, image_pattern(images), images) == replaced


def test_an_image_that_is_a_plain_word_stays_in_the_text() -> None:
    """It could be a label; it is replaced where images stand, in the parsed object."""
    images = {"harbour": "real/harbour"}
    assert replace_images("part-of: harbour", image_pattern(images), images) == "part-of: harbour"


def test_plain_words_are_replaced_where_images_stand() -> None:
    images = {"harbour": "real/harbour", "tools": "real/tools", "x/a": "real/a"}
    container = {"name": "harbour", "image": "harbour", "args": ["harbour"]}
    environment = [
        {"name": "TOOLS_IMAGE", "value": "tools"},
        {"name": "RELATED_IMAGE_X", "value": "other"},
        {"name": "NAME", "value": "harbour"},
    ]
    pod = {
        "kind": "Pod",
        "metadata": {"name": "harbour", "labels": {"app": "harbour"}},
        "spec": {"containers": [container | {"env": environment}], "initContainers": [container]},
    }
    made = replace_plain_images(pod, images)
    new = container | {"image": "real/harbour"}
    real_tools = {"name": "TOOLS_IMAGE", "value": "real/tools"}
    assert made == pod | {
        "spec": {
            "containers": [new | {"env": [real_tools, *environment[1:]]}],
            "initContainers": [new],
        }
    }
    assert container["image"] == "harbour"


def test_plain_words_are_replaced_in_the_map_of_images() -> None:
    given = {"harbour": "harbour", "a": "x/a", "number": 1}
    config_map = {"kind": "ConfigMap", "data": {"images.json": json.dumps(given), "a": "harbour"}}
    made = replace_plain_images(config_map, {"harbour": "real/harbour"})
    assert json.loads(made["data"]["images.json"]) == given | {"harbour": "real/harbour"}
    assert made["data"]["a"] == "harbour"


@pytest.mark.parametrize(
    "manifest",
    [
        {"kind": "ConfigMap", "data": {"images.json": "{"}},
        {"kind": "ConfigMap", "data": {"images.json": '["harbour"]'}},
        {"kind": "ConfigMap"},
        {"kind": "Deployment", "spec": {"template": None}},
        {"kind": "Pod", "spec": {"containers": [{"image": ["harbour"], "env": "harbour"}, None]}},
        {"kind": "Secret", "stringData": {"images.json": '{"a": "harbour"}'}},
    ],
)
def test_what_names_no_image_stays_as_it_is(manifest: dict[str, object]) -> None:
    assert replace_plain_images(manifest, {"harbour": "real/harbour"}) is manifest


def test_without_images_the_text_stays() -> None:
    assert replace_images("x/a", image_pattern({}), {}) == "x/a"


def test_versions_are_replaced_in_a_copy() -> None:
    before = {"kind": "Pod", "env": [{"name": "RELEASE_VERSION", "value": "0.0.1-snapshot"}]}
    after = replace_versions(before, "4.7.0")
    assert after == {"kind": "Pod", "env": [{"name": "RELEASE_VERSION", "value": "4.7.0"}]}
    assert before["env"] == [{"name": "RELEASE_VERSION", "value": "0.0.1-snapshot"}]


@pytest.mark.parametrize(
    "status",
    [None, [], {"versions": None}, {"versions": "0.0.1-snapshot"}, {"versions": ["x"]}],
)
def test_a_cluster_operator_without_versions_stays(status: object) -> None:
    operator = {"kind": "ClusterOperator", "status": status}
    assert replace_versions(operator, "4.7.0") == operator
