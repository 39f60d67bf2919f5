"""A kubeconfig becomes a connection; a broken one, one line that says what and where."""

import base64
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from quarterdeck.kube import CredentialsError, KubeconfigError, load_kubeconfig
from quarterdeck.kube.connection import in_cluster, proxy_from_env
from quarterdeck.localcluster.certificates import Plan, issue, new_authority

NOW = datetime.now(UTC)
AUTHORITY = new_authority("test", NOW)
PAIR = issue(Plan(name="me", common_name="me", client=True), AUTHORITY, NOW)
OTHER = issue(Plan(name="other", common_name="other", client=True), AUTHORITY, NOW)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def config(**changes: Any) -> dict[str, Any]:
    """A good kubeconfig; a change replaces the cluster, the user or the context."""
    cluster = changes.get("cluster", {"server": "https://api:6443"})
    cluster = {"certificate-authority-data": b64(AUTHORITY.certificate), **cluster}
    return {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": changes.get("user", {"token": "secret"})}],
        "contexts": [
            {"name": "x", "context": changes.get("context", {"cluster": "c", "user": "u"})}
        ],
        "current-context": changes.get("current", "x"),
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("", "{file}: is empty", id="an empty file"),
        pytest.param(
            "clusters: [\n  - {name: a",
            "{file}: not YAML in line 2, column 3: did not find expected node content",
            id="not YAML",
        ),
        pytest.param("- a list", "{file}: Expected `object`, got `array`", id="not a map"),
        pytest.param(
            config(cluster={"server": 6443}),
            "{file}: clusters[0].cluster.server: Expected `str`, got `int`",
            id="a field of the wrong type",
        ),
        pytest.param(
            config(current=""),
            "{file}: current-context is not set; choose one of: x",
            id="no current context",
        ),
        pytest.param(
            config(current="y"),
            "{file}: context 'y' is not defined; there are: x",
            id="a context that is not there",
        ),
        pytest.param(
            config(context={"cluster": "nope", "user": "u"}),
            "{file}: context 'x': cluster 'nope' is not defined; there are: c",
            id="a cluster that is not there",
        ),
        pytest.param(
            config(context={"cluster": "c", "user": "nope"}),
            "{file}: context 'x': user 'nope' is not defined; there are: u",
            id="a user that is not there",
        ),
        pytest.param(config(cluster={}), "{file}: cluster 'c': server is not set", id="no server"),
        pytest.param(
            config(cluster={"server": "https://api:port"}),
            "{file}: cluster 'c': server 'https://api:port' is not an http(s) address",
            id="a server that is no address",
        ),
        pytest.param(
            config(cluster={"server": "http://api.example.com"}),
            "{file}: cluster 'c': server http://api.example.com is without TLS; use https",
            id="a server without TLS",
        ),
        pytest.param(
            config(cluster={"server": "https://api", "insecure-skip-tls-verify": True}),
            "{file}: cluster 'c': insecure-skip-tls-verify is refused, TLS is always verified; "
            "set certificate-authority (and tls-server-name if the name differs)",
            id="verification switched off",
        ),
        pytest.param(
            config(cluster={"server": "https://api", "certificate-authority-data": "%%%"}),
            "{file}: cluster 'c': certificate-authority-data is not base64 of PEM text",
            id="an authority that is not base64",
        ),
        pytest.param(
            config(cluster={"server": "https://api", "certificate-authority-data": b64(b"hello")}),
            "{file}: cluster 'c': certificate-authority-data has no certificate in PEM form",
            id="an authority that is not a certificate",
        ),
        pytest.param(
            config(user={"client-certificate": "gone.crt", "client-key": "gone.key"}),
            "{file}: user 'u': client-certificate {dir}/gone.crt: No such file or directory",
            id="a certificate file that is not there",
        ),
        pytest.param(
            config(user={"client-certificate-data": b64(PAIR.certificate)}),
            "{file}: user 'u': has a client-certificate but no client-key",
            id="a certificate without a key",
        ),
        pytest.param(
            config(
                user={
                    "client-certificate-data": b64(PAIR.certificate),
                    "client-key-data": b64(OTHER.key),
                }
            ),
            "{file}: user 'u': client-certificate and client-key are not a pair in PEM form "
            "(KEY_VALUES_MISMATCH)",
            id="a key of another certificate",
        ),
        pytest.param(
            config(user={"tokenFile": "gone"}),
            "{file}: user 'u': tokenFile {dir}/gone: No such file or directory",
            id="a token file that is not there",
        ),
        pytest.param(
            config(user={"exec": {"command": "aws", "apiVersion": "v1alpha1"}}),
            "{file}: user 'u': exec.apiVersion 'v1alpha1' is not supported; use "
            "client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1",
            id="an exec plugin of an old version",
        ),
        pytest.param(
            config(user={"auth-provider": {"name": "gcp"}}),
            "{file}: user 'u': auth-provider 'gcp' no longer exists in Kubernetes; use exec",
            id="an auth provider",
        ),
        pytest.param(
            config(cluster={"server": "https://api", "proxy-url": "socks5://p:1080"}),
            "{file}: cluster 'c': proxy-url 'socks5://p:1080': "
            "only http and https proxies are supported",
            id="a proxy that we cannot use",
        ),
    ],
)
def test_a_broken_kubeconfig_gives_one_line(tmp_path: Path, content: Any, line: str) -> None:
    file = write(tmp_path / "config", content)
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(file, env={})
    assert str(caught.value) == line.format(file=file, dir=tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(tmp_path / "none", env={})
    assert str(caught.value) == f"{tmp_path}/none: No such file or directory"


def test_no_kubeconfig_at_all(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="no kubeconfig: KUBECONFIG is not set"):
        load_kubeconfig(env={"HOME": str(tmp_path)})


async def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = write(
        tmp_path / "first",
        {
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": "https://first"}}],
        },
    )
    second = write(tmp_path / "second", config(cluster={"server": "https://second"}))
    env = {"KUBECONFIG": os.pathsep.join(map(str, (first, tmp_path / "gone", second)))}
    connection = load_kubeconfig(env=env)
    assert connection.server == "https://first"
    assert await connection.credentials.authorization() == "Bearer secret"


async def test_what_a_context_says_is_in_the_connection(tmp_path: Path) -> None:
    (tmp_path / "me.crt").write_bytes(PAIR.certificate)
    (tmp_path / "me.key").write_bytes(PAIR.key)
    user = {
        "client-certificate": "me.crt",
        "client-key": "me.key",
        "as": "jane",
        "as-groups": ["a", "b"],
    }
    cluster = {
        "server": "https://10.0.0.1:6443/prefix/",
        "tls-server-name": "api.internal",
        "proxy-url": "http://proxy:3128",
    }
    context = {"cluster": "c", "user": "u", "namespace": "team"}
    file = write(tmp_path / "config", config(user=user, cluster=cluster, context=context))
    connection = load_kubeconfig(file, env={})
    assert connection.server == "https://10.0.0.1:6443/prefix"
    assert connection.tls_server_name == "api.internal"
    assert connection.proxy == "http://proxy:3128"
    assert connection.namespace == "team"
    assert connection.headers == {"Impersonate-User": "jane", "Impersonate-Group": ("a", "b")}
    assert await connection.credentials.authorization() is None


async def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    file = write(tmp_path / "config", config(user={"tokenFile": "token", "token": "copied"}))
    credentials = load_kubeconfig(file, env={}).credentials
    assert await credentials.authorization() == "Bearer one"
    fresh = tmp_path / "fresh"
    fresh.write_text("two")
    fresh.rename(token)
    assert await credentials.authorization() == "Bearer two"
    token.unlink()
    assert await credentials.authorization() == "Bearer two"


PLUGIN = """#!/bin/sh
echo run >> "$(dirname "$0")/runs"
printf '%s' "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"
cat "$(dirname "$0")/answer"
"""
EXEC_V1 = "client.authentication.k8s.io/v1"


class Plugin:
    """An exec plugin that answers what the test says and counts its runs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        script = directory / "plugin"
        script.write_text(PLUGIN)
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        user = {"exec": {"command": "./plugin", "apiVersion": EXEC_V1, "provideClusterInfo": True}}
        file = write(directory / "config", config(user=user))
        self.credentials = load_kubeconfig(file, env=os.environ).credentials

    def answers(self, **status: Any) -> None:
        answer = {"apiVersion": EXEC_V1, "kind": "ExecCredential", "status": status}
        (self.directory / "answer").write_text(json.dumps(answer))

    @property
    def runs(self) -> int:
        return len((self.directory / "runs").read_text().splitlines())


async def test_an_exec_plugin_is_run_once_until_its_token_expires(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.answers(token="soon-old", expirationTimestamp="2001-01-01T00:00:00Z")
    assert await plugin.credentials.authorization() == "Bearer soon-old"
    plugin.answers(token="fresh", expirationTimestamp="2999-01-01T00:00:00Z")
    assert await plugin.credentials.authorization() == "Bearer fresh"
    assert await plugin.credentials.authorization() == "Bearer fresh"
    assert plugin.runs == 2
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"]["cluster"]["server"] == "https://api:6443"
    assert info["spec"]["interactive"] is False


async def test_an_exec_plugin_is_run_again_after_its_token_was_rejected(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.answers(token="bad")
    await plugin.credentials.authorization()
    plugin.answers(token="good")
    assert plugin.credentials.rejected()
    assert await plugin.credentials.authorization() == "Bearer good"


async def test_an_exec_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.answers(clientCertificateData=PAIR.certificate.decode(), clientKeyData=PAIR.key.decode())
    assert await plugin.credentials.authorization() is None


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        pytest.param("nonsense", "its answer is not an ExecCredential: ", id="not JSON"),
        pytest.param(
            '{"apiVersion": "v9", "status": {"token": "x"}}',
            "answered apiVersion 'v9', the kubeconfig says 'client.authentication.k8s.io/v1'",
            id="another version",
        ),
        pytest.param(
            json.dumps({"apiVersion": EXEC_V1}),
            "its answer has neither token nor client certificate",
            id="nothing in it",
        ),
    ],
)
async def test_an_exec_plugin_that_answers_badly(tmp_path: Path, answer: str, line: str) -> None:
    plugin = Plugin(tmp_path)
    (tmp_path / "answer").write_text(answer)
    with pytest.raises(CredentialsError) as caught:
        await plugin.credentials.authorization()
    where = f"{tmp_path}/config: user 'u': exec plugin {tmp_path}/plugin: "
    assert str(caught.value).startswith(where + line)
    assert "\n" not in str(caught.value)


async def test_an_exec_plugin_that_is_not_installed(tmp_path: Path) -> None:
    plugin = {"command": "no-such-plugin", "apiVersion": EXEC_V1, "installHint": "get it\nthere"}
    file = write(tmp_path / "config", config(user={"exec": plugin}))
    with pytest.raises(CredentialsError) as caught:
        await load_kubeconfig(file, env={}).credentials.authorization()
    assert str(caught.value) == (
        f"{file}: user 'u': exec plugin no-such-plugin: "
        "cannot be run: No such file or directory (get it there)"
    )


async def test_in_a_cluster_everything_comes_from_the_kubelet(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "namespace").write_text("team")
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = in_cluster(env, tmp_path)
    assert connection.server == "https://[fd00::1]:443"
    assert connection.namespace == "team"
    assert await connection.credentials.authorization() == "Bearer pod-token"


@pytest.mark.parametrize(
    ("env", "line"),
    [
        pytest.param({}, "not in a cluster: ", id="no address"),
        pytest.param(
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"},
            "{dir}/token: missing; is automountServiceAccountToken off for this pod?",
            id="no token",
        ),
    ],
)
def test_not_in_a_cluster(tmp_path: Path, env: dict[str, str], line: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        in_cluster(env, tmp_path)
    assert str(caught.value).startswith(line.format(dir=tmp_path))


@pytest.mark.parametrize(
    ("no_proxy", "used"),
    [
        pytest.param("", True, id="no exceptions"),
        pytest.param("10.0.0.0/8", False, id="a network"),
        pytest.param("10.1.2.3", False, id="the address"),
        pytest.param("*", False, id="everything"),
        pytest.param("example.com, 192.168.0.0/16", True, id="others"),
    ],
)
def test_a_proxy_from_the_environment(no_proxy: str, used: bool) -> None:
    env = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": no_proxy}
    found = proxy_from_env("https://10.1.2.3:6443", env)
    assert found == ("http://proxy:3128" if used else None)


@pytest.mark.parametrize("entry", [".example.com", "example.com", "api.example.com"])
def test_a_domain_is_exempt_with_all_below_it(entry: str) -> None:
    env = {"https_proxy": "http://proxy", "no_proxy": entry}
    assert proxy_from_env("https://api.example.com", env) is None
