"""What loading replaces: templates, images, versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
