"""Which kubeconfigs a hosted cluster version operator is given."""

import base64
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.kube.errors import KubeconfigError
from quarterdeck.kube.kubeconfig import load_kubeconfig
from quarterdeck.operators.hosted.kubeconfig import MAX_BYTES, REMEDY, kubeconfig_fault

SECRET = "9" * 50


def fault(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return kubeconfig_fault(base64.b64encode(data).decode())


def kubeconfig(cluster: str = "server: 'https://127.0.0.1:1'", user: str = "token: abc") -> str:
    return f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{{cluster}}}}}]
users: [{{name: u, user: {{{user}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def test_a_kubeconfig_with_all_its_data_is_used() -> None:
    assert fault(kubeconfig()) == ""
    assert fault(kubeconfig(user="exec: null, client-key-data: eA==, tokenFile: ''")) == ""
    assert fault(kubeconfig("server: x, insecure-skip-tls-verify: false")) == ""


EXEC = "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}"
HOSTILE = [
    pytest.param(kubeconfig(user=EXEC), "users[0].user.exec .* runs a program", id="a program"),
    pytest.param(
        f"a: &a {{{EXEC}}}\n{kubeconfig(user='<<: *a')}", "users[0].user.exec", id="an alias"
    ),
    pytest.param(kubeconfig(user="exec: {}"), "users[0].user.exec", id="a program without a name"),
    pytest.param(
        f"{kubeconfig()}users: [{{name: u, user: {{{EXEC}}}}}]\n", "not one YAML", id="users twice"
    ),
    pytest.param(
        kubeconfig().replace("users: [", f"users: [{{name: u, user: {{{EXEC}}}}}, "),
        "users[0].user.exec",
        id="a user twice",
    ),
    pytest.param(kubeconfig(user="auth-provider: {name: gcp}"), "auth-provider", id="a provider"),
    pytest.param(
        kubeconfig(user="tokenFile: /proc/self/environ"), "tokenFile .* a file", id="file"
    ),
    pytest.param(kubeconfig(user="client-certificate: a, client-key: b"), "certificate", id="pair"),
    pytest.param(kubeconfig("server: x, certificate-authority: /etc/passwd"), "author", id="ca"),
    pytest.param(
        kubeconfig("server: x, insecure-skip-tls-verify: true"), "unverified", id="not verified"
    ),
    pytest.param(kubeconfig().replace("users: [", "users: [{name: a}, 3, "), "", id="odd entries"),
    pytest.param("users: {exec: 1}", "users of its kubeconfig is not a list", id="no list"),
    pytest.param(f"token: {SECRET * 10}", "not one YAML object", id="a value that is no number"),
    pytest.param("first", "not one YAML object", id="no object"),
    pytest.param("", "not one YAML object", id="empty"),
    pytest.param("a: 1\n---\nb: 1\n", "not one YAML object", id="two"),
    pytest.param("[" * 60_000, "not one YAML object", id="deep"),
    pytest.param(kubeconfig(user=EXEC).encode("utf-16"), "not text", id="another encoding"),
    pytest.param("#" * (MAX_BYTES + 1), "more than 65536 bytes", id="long"),
]


@pytest.mark.parametrize(("content", "why"), HOSTILE)
def test_what_names_programs_or_files_or_is_no_kubeconfig_is_refused(
    content: str | bytes, why: str
) -> None:
    said = fault(content)
    if not why:
        assert said == ""
        return
    assert re.search(why.replace("[", r"\[").replace("]", r"\]"), said)
    assert said.endswith(REMEDY)
    assert "\n" not in said
    assert SECRET not in said


def test_the_operator_would_run_the_program(tmp_path: Path) -> None:
    """Why it is refused here: who reads the file does as it says."""
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(user=EXEC))
    assert "ExecPlugin" in type(load_kubeconfig(file).credentials).__name__
    file.write_text(kubeconfig("server: 'https://x', insecure-skip-tls-verify: true"))
    with pytest.raises(KubeconfigError, match="always verified"):
        load_kubeconfig(file)


@given(st.binary(max_size=100) | st.text(max_size=100).map(str.encode))
def test_no_content_is_more_than_refused(content: bytes) -> None:
    assert "\n" not in fault(content)
