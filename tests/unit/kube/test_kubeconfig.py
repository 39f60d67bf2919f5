"""A kubeconfig becomes a connection; a broken one, one line that says what and where."""

import asyncio
import base64
import json
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from quarterdeck.kube import Connection, CredentialsError, KubeconfigError, load_kubeconfig
from quarterdeck.kube.auth import CertificateFiles
from quarterdeck.kube.connection import in_cluster, proxy_from_env
from quarterdeck.localcluster.certificates import CertificateSpec, issue, new_authority
from quarterdeck.testing.waiting import eventually_async

NOW = datetime.now(UTC)
AUTHORITY = new_authority("test", NOW)
PAIR = issue(CertificateSpec(name="me", common_name="me", client=True), AUTHORITY, NOW)
OTHER = issue(CertificateSpec(name="other", common_name="other", client=True), AUTHORITY, NOW)


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
            "{file}: user 'u': auth-provider 'gcp' is not supported here; use exec or a token",
            id="an auth provider",
        ),
        pytest.param(
            config(cluster={"server": "https://api", "proxy-url": "socks5://p:1080"}),
            "{file}: cluster 'c': proxy-url 'socks5://p:1080': "
            "only http and https proxies are supported",
            id="a proxy that we cannot use",
        ),
        pytest.param(
            config(cluster={"server": "https://api", "proxy-url": "socks5://me:hunter2@p"}),
            "{file}: cluster 'c': proxy-url 'socks5://p': "
            "only http and https proxies are supported",
            id="a proxy with a password that we cannot use",
        ),
        pytest.param(
            config(cluster={"server": "https://me:hunter2@api:6443"}),
            "{file}: cluster 'c': server has a user before the host 'api'; "
            "give username and password of the user",
            id="a user and password in the server's address",
        ),
        pytest.param(
            config(cluster={"server": "https://api", "certificate-authority-data": b64(b" \n")}),
            "{file}: cluster 'c': certificate-authority-data has no certificate in PEM form",
            id="an authority that is blank",
        ),
        pytest.param(
            config(user={"token": "abc\ndef"}),
            "{file}: user 'u': token has a line break or another character that no header can have",
            id="a token of two lines",
        ),
        pytest.param(
            config(user={"token": "x", "as": "jane\r\nImpersonate-Group: system:masters"}),
            "{file}: user 'u': as: a line break in a user, group or extra value",
            id="a user of two lines",
        ),
        pytest.param(
            {"clusters": None, "current-context": "x", "contexts": [{"name": "x"}]},
            "{file}: context 'x': cluster '' is not defined; there are: none",
            id="a context that says nothing",
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
    assert str(caught.value) == (
        f"kubeconfig {tmp_path}/none: No such file or directory; name another with --kubeconfig or "
        "KUBECONFIG"
    )


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


def test_an_empty_file_among_several_is_left_out(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", "")
    good = write(tmp_path / "good", config())
    env = {"KUBECONFIG": os.pathsep.join(map(str, (empty, good)))}
    assert load_kubeconfig(env=env).server == "https://api:6443"
    with pytest.raises(KubeconfigError, match=f"{empty}: is empty"):
        load_kubeconfig(env={"KUBECONFIG": f"{empty}{os.pathsep}{empty}"})


async def test_a_null_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    cluster = dict.fromkeys(("certificate-authority", "proxy-url", "extensions"))
    user = dict.fromkeys(("as", "as-groups", "as-user-extra", "client-key", "exec", "tokenFile"))
    context = {"cluster": "c", "user": "u", "namespace": None, "extensions": None}
    content = config(
        cluster={"server": "https://api", **cluster},
        user={"token": "secret", **user},
        context=context,
    )
    file = write(tmp_path / "config", {"preferences": None, **content})
    connection = load_kubeconfig(file, env={})
    assert (connection.namespace, connection.headers) == ("default", {})
    assert await connection.credentials.authorization() == "Bearer secret"


NOTE = "# Zertifikat für uns\n"


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param({"certificate-authority": "utf-8.crt"}, id="a comment in UTF-8"),
        pytest.param({"certificate-authority": "latin-1.crt"}, id="a comment in Latin-1"),
        pytest.param(
            {"certificate-authority-data": b64(NOTE.encode() + AUTHORITY.certificate)},
            id="a comment in the data",
        ),
        pytest.param(
            {"certificate-authority-data": base64.encodebytes(AUTHORITY.certificate).decode()},
            id="base64 with line breaks",
        ),
    ],
)
def test_an_authority_is_read_as_others_read_it(tmp_path: Path, cluster: dict[str, str]) -> None:
    for encoding in ("utf-8", "latin-1"):
        pem = NOTE.encode(encoding) + AUTHORITY.certificate
        (tmp_path / f"{encoding}.crt").write_bytes(pem)
    content = config()
    content["clusters"][0]["cluster"] = {"server": "https://api", **cluster}
    tls = load_kubeconfig(write(tmp_path / "config", content), env={}).tls
    assert tls is not None
    assert len(tls.get_ca_certs()) == 1


@pytest.mark.parametrize("text", ["", "\n", "# to be filled in\n"])
def test_an_authority_file_without_certificates_does_not_mean_the_systems(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "ca.crt").write_text(text)
    content = config()
    content["clusters"][0]["cluster"] = {"server": "https://api", "certificate-authority": "ca.crt"}
    with pytest.raises(KubeconfigError, match="certificate-authority has no certificate in PEM"):
        load_kubeconfig(write(tmp_path / "config", content), env={})


async def test_white_space_around_a_token_is_no_part_of_it(tmp_path: Path) -> None:
    file = write(tmp_path / "config", config(user={"token": "secret\n"}))
    assert await load_kubeconfig(file, env={}).credentials.authorization() == "Bearer secret"


@pytest.mark.parametrize("text", ["two\nlines", "one\0", "ü"])
async def test_a_token_file_whose_content_fits_no_header_is_named(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "token").write_text(text)
    file = write(tmp_path / "config", config(user={"tokenFile": "token"}))
    with pytest.raises(CredentialsError, match=f"token file {tmp_path}/token: token has a line"):
        await load_kubeconfig(file, env={}).credentials.authorization()


def test_the_keys_of_an_impersonated_users_extra_are_escaped(tmp_path: Path) -> None:
    extra = {"example.com/scopes": ["a"], "100%": ["b"], "für": ["c"]}
    file = write(tmp_path / "config", config(user={"as": "jane", "as-user-extra": extra}))
    assert load_kubeconfig(file, env={}).headers == {
        "Impersonate-User": "jane",
        "Impersonate-Extra-example.com%2Fscopes": ("a",),
        "Impersonate-Extra-100%25": ("b",),
        "Impersonate-Extra-f%C3%BCr": ("c",),
    }


def test_a_password_in_the_servers_address_is_not_in_its_name() -> None:
    connection = Connection(server="https://me:hunter2@api:6443", tls=None)
    assert connection.host == "api:6443"


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
    for unusable in ("", "half\nof two", "\0"):
        token.write_text(unusable)
        assert await credentials.authorization() == "Bearer two"
    token.unlink()
    token.mkdir()
    assert await credentials.authorization() == "Bearer two"
    token.rmdir()
    token.write_text("three")
    assert await credentials.authorization() == "Bearer three"


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


FLOOD = "wrote more than 1048576 bytes"
NOTHING = "gave no answer in 1 s"


@pytest.mark.parametrize(
    ("script", "limit", "line"),
    [
        pytest.param("yes", 30, FLOOD, id="output without end"),
        pytest.param("yes >&2", 30, FLOOD, id="complaints without end"),
        pytest.param("sleep 1000", 0.6, NOTHING, id="no answer"),
        pytest.param("sleep 1000 & exit 0", 0.6, NOTHING, id="a child that has its pipes"),
        pytest.param("sleep 1000; true", 0.6, NOTHING, id="a child that it waits for"),
        pytest.param("exit 3", 30, "exit code 3: no output", id="nothing said"),
        pytest.param(
            "head -c 500000 /dev/zero | tr '\\0' x >&2; exit 1", 30, "exit code 1: x", id="a line"
        ),
    ],
)
async def test_an_exec_plugin_that_gives_nothing_is_done_with(
    tmp_path: Path, script: str, limit: float, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended with its children."""
    monkeypatch.setattr("quarterdeck.kube.auth.EXEC_TIMEOUT", limit)
    plugin = Plugin(tmp_path)
    (tmp_path / "plugin").write_text(f"#!/bin/sh\n{script}\n")
    groups: list[int] = []
    start = asyncio.create_subprocess_exec

    async def noted(*command: Any, **settings: Any) -> asyncio.subprocess.Process:
        process = await start(*command, **settings)
        groups.append(process.pid)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    with pytest.raises(CredentialsError) as caught:
        await asyncio.wait_for(plugin.credentials.authorization(), 60)
    assert line in str(caught.value)
    assert len(str(caught.value)) < 1000
    await eventually_async(lambda: not _alive(groups[0]), "the group has ended", 20)


def _alive(group: int) -> bool:
    """Whether the group has a process that runs; an init process may be slow to reap the others."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, in_group = path.read_bytes().rpartition(b")")[2].split()[:3]
            if int(in_group) == group and state != b"Z":
                return True
    return False


async def test_an_exec_plugin_that_is_waited_for_no_longer_is_ended(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    (tmp_path / "plugin").write_text("#!/bin/sh\nsleep 1000 &\nwait\n")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await plugin.credentials.authorization()
    (tmp_path / "plugin").write_text(PLUGIN)
    plugin.answers(token="fresh")
    async with asyncio.timeout(20):
        assert await plugin.credentials.authorization() == "Bearer fresh"


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


@pytest.mark.parametrize(
    ("server", "entry", "used"),
    [
        ("https://api.example.com", "*.example.com", False),
        ("https://api.example.com", "*.example.org", True),
        ("https://api.example.com:6443", "example.com:6443", False),
        ("https://api.example.com:6443", "example.com:443", True),
        ("https://api.example.com", "example.com:443", False),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", False),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://[fd00::1]:6443", "[fd00::1]", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "[fd00::1]:443", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "fe80::/10", True),
        ("https://api.example.com", "*.", True),
    ],
)
def test_forms_of_an_entry_of_no_proxy(server: str, entry: str, used: bool) -> None:
    env = {"HTTPS_PROXY": "proxy", "NO_PROXY": entry}
    assert (proxy_from_env(server, env) is not None) is used


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("socks5://me:hunter2@p:1080", "HTTPS_PROXY: 'socks5://p:1080': only http and https"),
        ("http://p:port", "HTTPS_PROXY: is not an address"),
        ("http://", "HTTPS_PROXY: has no host"),
    ],
)
def test_a_proxy_of_the_environment_that_cannot_be_used_is_refused(proxy: str, why: str) -> None:
    with pytest.raises(KubeconfigError, match=why):
        proxy_from_env("https://api", {"HTTPS_PROXY": proxy})


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_certificate_and_its_key_may_be_in_one_file(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    both = (PAIR.certificate, PAIR.key)
    (tmp_path / "me.pem").write_bytes(b"".join(both[one] for one in order))
    user = {"client-certificate": "me.pem", "client-key": "me.pem"}
    found = load_kubeconfig(write(tmp_path / "config", config(user=user))).credentials
    assert isinstance(found, CertificateFiles)
    assert found.single_file == tmp_path / "me.pem"
    (tmp_path / "new").write_bytes(OTHER.certificate + OTHER.key)
    (tmp_path / "new").replace(tmp_path / "me.pem")
    asyncio.run(found.authorization())
    assert found.renewals == 1
