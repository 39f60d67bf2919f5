"""`quarterdeck local` as a user runs it: each command a process of its own, on real binaries."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.localcluster.binaries import Binaries, BinarySettings
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import read_status
from quarterdeck.testing.waiting import eventually

PROGRAM = Path(sys.executable).with_name("quarterdeck")
LIMIT = 120.0

Result = subprocess.CompletedProcess[str]


class Local:
    """`quarterdeck local` with a state directory and a home of its own."""

    def __init__(self, directory: Path) -> None:
        self.layout = Layout(directory / "state")
        self.drawn = ""
        self.home = directory / "home"
        self.home.mkdir(parents=True)
        cache = BinarySettings.from_environment(os.environ).cache.parent
        self.environment = os.environ | {"HOME": str(self.home), "QUARTERDECK_CACHE": str(cache)}

    def argv(self, command: str, *arguments: str) -> list[str]:
        return [str(PROGRAM), "local", command, "--state-dir", str(self.layout.root), *arguments]

    def run(self, command: str, *arguments: str) -> Result:
        return subprocess.run(
            self.argv(command, *arguments),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    def start(self, command: str, *arguments: str) -> "subprocess.Popen[str]":
        """A command that goes on; `kill_all` ends it."""
        return subprocess.Popen(
            self.argv(command, *arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def status(self) -> Any:
        return json.loads(self.run("status", "-o", "json").stdout)

    def component(self, name: str) -> Any:
        (found,) = [one for one in self.status()["components"] if one["name"] == name]
        return found

    def supervisor(self) -> int | None:
        """The process that a start in progress has written down, as soon as it has."""
        status = read_status(self.layout)
        return status.supervisor.pid if status is not None else None

    def processes(self) -> dict[int, str]:
        """Everything that runs with this cluster's directory in its command line."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.layout.root) in line:
                found[int(path.parent.name)] = line
        return found

    def kill_all(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def one_line_error(result: Result, code: int = 2) -> str:
    """The one line in which a failed command says what is in the way."""
    assert result.returncode == code, (result.stdout, result.stderr)
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in result.stderr
    assert result.stderr.endswith(f"{line}\n"), "nothing comes after it"
    return line


@pytest.fixture
def local(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[Local]:
    """Nothing runs yet; nothing runs afterwards."""
    local = Local(tmp_path)
    yield local
    local.kill_all()


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries
) -> Iterator[Local]:
    """A cluster that was started by `local up`, for all tests that leave it running."""
    local = Local(tmp_path_factory.mktemp("running"))
    try:
        local.drawn = up_on_a_terminal(local)
        yield local
    finally:
        local.kill_all()


def up_on_a_terminal(local: Local) -> str:
    """Start it as from a terminal; what is drawn there."""
    ours, theirs = os.openpty()
    environment = local.environment | {"TERM": "xterm"}
    with subprocess.Popen(
        local.argv("up", "--audit-log"), env=environment, stdout=subprocess.DEVNULL, stderr=theirs
    ) as up:
        os.close(theirs)
        drawn = b""
        with contextlib.suppress(OSError):  # what reading gives when nobody holds the other end
            while chunk := os.read(ours, 10_000):
                drawn += chunk
    os.close(ours)
    assert up.returncode == 0, drawn.decode(errors="replace")
    return drawn.decode(errors="replace")


# A cluster that runs.


def test_up_says_what_runs_and_where(running: Local) -> None:
    """A second `up` starts nothing, and says the same."""
    before = running.status()
    result = running.run("up")
    assert result.returncode == 0
    assert f"already running at {before['url']}" in result.stdout
    assert running.status() == before


def test_up_with_a_console_says_how_to_start_one_beside_a_cluster_that_runs(
    running: Local,
) -> None:
    result = running.run("up", "--foreground", "--console")
    assert result.returncode == 0
    assert "quarterdeck console --one-time-link --kubeconfig=" in result.stdout


def test_progress_on_a_terminal(running: Local) -> None:
    """On a terminal the steps are drawn by rich, and the command ends as well as elsewhere."""
    assert "starting etcd and the API server" in running.drawn


def test_up_with_another_port_is_refused_while_it_runs(running: Local) -> None:
    line = one_line_error(running.run("up", "--port", "4711"))
    assert "to move it to port 4711, stop it first with:" in line


def test_the_audit_log_has_every_request_without_its_body(running: Local) -> None:
    log = Path(running.status()["auditLog"])
    assert log == running.layout.audit_log
    assert str(log) in running.run("status").stdout
    literal = "--from-literal=key=not-in-the-log"
    assert running.run("kubectl", "create", "configmap", "audited", literal).returncode == 0
    text = log.read_text()
    assert '"name":"audited"' in text
    assert "not-in-the-log" not in text
    assert log.stat().st_mode & 0o077 == 0


def test_status_is_ready_and_names_every_component(running: Local) -> None:
    result = running.run("status")
    assert result.returncode == 0
    assert "export KUBECONFIG=" in result.stdout
    status = running.status()
    assert status["state"] == "ready"
    assert [one["name"] for one in status["components"]] == [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "this-machine",
    ]
    pids = {one["pid"] for one in status["components"]} | {status["supervisor"]["pid"]}
    found = running.processes()
    # One more runs the node's agent, and ends what that one leaves behind.
    (keeper,) = (pid for pid, line in found.items() if "end_with_program" in line)
    assert pids | {keeper} == set(found), "these and no others run"


def test_quarterdecks_types_are_in_it(running: Local) -> None:
    result = running.run("kubectl", "get", "crd", "-o", "name")
    assert "clusteroperators.config.openshift.io" in result.stdout
    explained = running.run("kubectl", "explain", "clusterversionoperator.spec")
    assert explained.returncode == 0
    assert "KIND:       ClusterVersionOperator" in explained.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["get", "nonsense"], 1, "the server doesn't have", id="a failure is its own"),
        pytest.param(["-n", "kube-system", "get", "pods"], 0, "", id="options may come first"),
        pytest.param(["version", "-o", "json"], 0, '"gitVersion": "v1.36.4"', id="it is pinned"),
        pytest.param(["get", "--help"], 0, "Display one or many resources", id="help is its own"),
        pytest.param(["help"], 0, "kubectl controls the Kubernetes", id="all help is its own"),
        pytest.param(["auth", "whoami"], 0, "quarterdeck-admin", id="as administrator"),
    ],
)
def test_kubectl_gets_all_arguments(
    running: Local, arguments: list[str], code: int, says: str
) -> None:
    result = running.run("kubectl", *arguments)
    assert result.returncode == code
    assert says in result.stdout + result.stderr


def test_kubectl_leaves_the_home_directory_alone(running: Local) -> None:
    assert running.run("kubectl", "get", "nodes").returncode == 0
    assert list(running.home.iterdir()) == []


def test_kubectl_finds_quarterdeck_as_a_plugin(
    running: Local, control_plane_binaries: Binaries
) -> None:
    environment = running.environment | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}

    def kubectl(*arguments: str) -> Result:
        argv: Sequence[str | Path] = [control_plane_binaries.kubectl, *arguments]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)

    assert str(PROGRAM.with_name("kubectl-quarterdeck")) in kubectl("plugin", "list").stdout
    assert kubectl("quarterdeck", "--version").stdout.startswith("quarterdeck, version ")


def test_a_crashed_component_is_started_again_and_reported(running: Local) -> None:
    """The status shows it crashed, with exit code 1; then running again, restarts counted."""
    before = running.component("kube-scheduler")
    os.kill(before["pid"], signal.SIGKILL)
    eventually(lambda: running.run("status").returncode == 1, "degraded")
    eventually(lambda: running.run("status").returncode == 0, "ready again")
    after = running.component("kube-scheduler")
    assert after["restarts"] == before["restarts"] + 1
    assert after["pid"] != before["pid"]
    log = running.layout.log_of("supervisor").read_text()
    assert "kube-scheduler was killed by SIGKILL; starting it again in 0.5 s" in log
    assert "kube-scheduler runs again" in log


def test_nothing_listens_beyond_loopback(running: Local) -> None:
    """Every listening socket of every process has a loopback address."""
    ports = json.loads(running.layout.ports.read_bytes())
    inodes = {
        match[1]
        for pid in running.processes()
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if (match := re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink())))
    }
    listening = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            # For UDP, "listening" is having no peer.
            if fields[9] in inodes and (fields[3] == "0A" or table.startswith("udp")):
                address, _, port = fields[1].partition(":")
                listening.add((address, int(port, 16)))
    # The kernel writes 127.0.0.1 as 0100007F.
    assert {address for address, _ in listening if not address.endswith("7F")} == set()
    assert {port for _, port in listening} >= set(ports.values())


def test_state_and_keys_are_for_their_owner_alone(running: Local) -> None:
    root = running.layout.root
    assert root.stat().st_mode & 0o777 == 0o700
    secrets = [running.layout.kubeconfig, *running.layout.pki.iterdir()]
    secrets += running.layout.kubeconfigs.iterdir()
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in secrets} == {
        path.name: "0o600" for path in secrets
    }


# Starting and stopping.


def check_foreground(local: Local, url: str, *kubectl: str) -> None:
    """`up --foreground` shows three commands that work, runs until Ctrl-C, and leaves no process.

    Meanwhile the cluster has this address, and kubectl succeeds with these arguments.
    """
    with local.start("up", "--foreground") as foreground:
        assert foreground.stdout is not None
        lines = []
        for line in foreground.stdout:
            lines.append(line)
            if line.startswith("Ctrl-C"):
                break
        assert "Try:\n" in lines, "".join(lines)
        # A line that ends in a backslash goes on in the next one.
        shown = "".join(lines[lines.index("Try:\n") :]).replace("\\\n", "")
        tries = [line.strip() for line in shown.splitlines() if " kubectl " in line]
        pasted = [
            subprocess.run(words, shell=True, env=local.environment, check=False)  # noqa: S602
            for words in tries
        ]
        assert local.status()["url"] == url
        answered = local.run("kubectl", *kubectl)
        foreground.send_signal(signal.SIGINT)
        rest = foreground.stdout.read()
    assert foreground.returncode == 0
    assert len(tries) == 3
    assert [(one.args, one.returncode) for one in pasted] == [(words, 0) for words in tries]
    assert answered.returncode == 0, answered.stderr
    assert rest.splitlines()[-1] == f"stopped; the state is left in {local.layout.root}"
    assert local.processes() == {}


def test_down_stops_everything_and_the_next_up_finds_it_again(local: Local) -> None:
    """Objects, address and credentials outlive `down`; `down --purge` leaves nothing.

    The next `up` is in the foreground.
    """
    assert local.run("up").returncode == 0
    line = one_line_error(local.run("up", "--audit-log"))
    assert "the cluster runs without an audit log; to start it with one, stop it" in line
    assert not local.layout.audit_log.exists()
    url = local.status()["url"]
    saved = local.home / "kubeconfig"
    saved.write_bytes(local.layout.kubeconfig.read_bytes())
    assert local.run("kubectl", "create", "configmap", "kept").returncode == 0

    result = local.run("down")
    assert result.returncode == 0
    assert result.stdout.startswith("stopped\n")
    assert f"left     {local.layout.root}" in result.stdout
    assert local.processes() == {}
    assert local.run("status").returncode == 3

    check_foreground(local, url, "--kubeconfig", str(saved), "get", "configmap", "kept")

    result = local.run("down", "--purge")
    assert f"removed  {local.layout.root}" in result.stdout
    assert not local.layout.root.exists()


def test_down_of_nothing_is_no_error(local: Local) -> None:
    result = local.run("down")
    assert (result.returncode, result.stdout.splitlines()[0]) == (0, "not running")


def test_kubectl_without_a_cluster_says_how_to_start_one(local: Local) -> None:
    line = one_line_error(local.run("kubectl", "get", "pods"), code=3)
    assert "the cluster does not run; start it with:" in line


def test_two_ups_at_once_make_one_cluster_which_goes_with_its_supervisor(local: Local) -> None:
    """One starts it, the other waits for it; both end well and say the same address.

    No process is left over after kill -9 of the supervisor.
    """
    both = [local.start("up"), local.start("up")]
    outputs = [process.communicate(timeout=LIMIT)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    status = local.status()
    assert all(status["url"] in output for output in outputs)
    supervisors = [line for line in local.processes().values() if "supervisor" in line]
    assert len(supervisors) == 1

    os.kill(status["supervisor"]["pid"], signal.SIGKILL)
    eventually(lambda: local.processes() == {}, "all components are gone")
    assert local.run("status").returncode == 3


def test_kill_9_in_the_middle_of_a_start(local: Local) -> None:
    """Of the supervisor: who waits is told in one line, nothing is left over, the next `up` works.

    Of that `up`: what it has begun goes on, and the one after it waits for that.
    """
    starting = local.start("up")
    eventually(lambda: local.layout.log_of("etcd").exists(), "etcd is being started")
    supervisor = local.supervisor()
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    output, _ = starting.communicate(timeout=LIMIT)
    assert starting.returncode == 2
    assert "error: the supervisor was killed by SIGKILL" in output

    second = local.start("up")
    begun = eventually(
        lambda: pid if (pid := local.supervisor()) != supervisor else None,
        "the next supervisor has said who it is",
    )
    second.kill()
    second.communicate()
    last = local.run("up")
    assert last.returncode == 0, last.stderr
    assert local.supervisor() == begun
    assert local.run("status").returncode == 0


def test_ctrl_c_during_up_leaves_nothing(local: Local) -> None:
    starting = local.start("up")
    eventually(lambda: local.layout.log_of("etcd").exists(), "etcd is being started")
    starting.send_signal(signal.SIGINT)
    starting.communicate(timeout=LIMIT)
    assert starting.returncode != 0
    assert local.processes() == {}


def test_a_second_ctrl_c_kills(local: Local) -> None:
    """However far the first one has come, the second ends it all."""
    with local.start("up", "--foreground") as foreground:
        assert foreground.stdout is not None
        assert any(line.startswith("Ctrl-C") for line in foreground.stdout), "it is ready"
        foreground.send_signal(signal.SIGINT)
        foreground.send_signal(signal.SIGINT)
        foreground.communicate(timeout=LIMIT)
    assert local.processes() == {}


# What is in the way is said in one line.


def test_a_taken_port_is_named_with_its_holder(local: Local) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = one_line_error(local.run("up", "--port", str(port)))
    assert f"port {port} of kube-apiserver is taken by" in line
    assert f"(pid {os.getpid()})" in line
    assert local.processes() == {}


def test_a_port_for_root_alone(local: Local) -> None:
    """Without privileges, as most users have it."""
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
    result = subprocess.run(
        [*user, *local.argv("up", "--port", "80")],
        env=local.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in result.stderr:
        pytest.skip(f"no user namespace to be had here: {result.stderr.strip()}")
    assert "port 80 is not for ordinary users" in one_line_error(result)


def test_a_state_directory_of_another_version(local: Local) -> None:
    local.layout.root.mkdir(mode=0o700)
    local.layout.version.write_text('{"format": 1, "kubernetes": "1.35.0"}')
    line = one_line_error(local.run("up"))
    assert "was made for Kubernetes 1.35.0" in line
    remedy = line.partition("remove it with: ")[2].split()
    result = subprocess.run([PROGRAM, *remedy[1:]], env=local.environment, check=False)
    assert result.returncode == 0
    assert not local.layout.root.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_state_directory_of_another_user(local: Local) -> None:
    local.layout.root.mkdir()
    os.chown(local.layout.root, 12345, 12345)
    assert "belongs to user id 12345, you are 0" in one_line_error(local.run("up"))


def test_a_full_disk(local: Local) -> None:
    """On a disk of 64 MB nothing is started, and the line says how much is needed."""
    mount_point = local.home / "small"
    mount_point.mkdir()
    local.layout = Layout(mount_point / "state")
    command = " ".join(local.argv("up"))
    script = f"mount -t tmpfs -o size=64m tmpfs {mount_point} || exit 77; {command}"
    # A mount namespace of its own: the small disk goes with the process.
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    result = subprocess.run(
        ["unshare", "--mount", *own, "sh", "-c", script],
        env=local.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip(f"no mount namespace to be had here: {result.stderr.strip()}")
    line = one_line_error(result)
    assert f"the disk of {local.layout.root} is full: 64 MB free, 256 MB are needed" in line


def test_a_place_that_cannot_be_written_is_named(local: Local) -> None:
    local.layout = Layout(Path("/proc/quarterdeck"))
    line = one_line_error(local.run("up"))
    assert "cannot use /proc/quarterdeck for the cluster's state" in line


def test_a_broken_program_is_explained_by_its_log(
    local: Local, tmp_path: Path, control_plane_binaries: Binaries
) -> None:
    """An etcd that ends at once: the line names it, and where to read more."""
    assets = tmp_path / "assets"
    assets.mkdir()
    for name, path in control_plane_binaries.paths.items():
        (assets / name).symlink_to(path)
    (assets / "etcd").unlink()
    (assets / "etcd").write_text("#!/bin/sh\necho no luck today\nexit 4\n")
    (assets / "etcd").chmod(0o755)
    local.environment["KUBEBUILDER_ASSETS"] = str(assets)
    line = one_line_error(local.run("up"))
    assert "etcd ended with exit code 4 before it was ready" in line
    log = local.layout.log_of("etcd")
    assert str(log) in line
    assert "no luck today" in log.read_text()
    assert local.processes() == {}
    assert "the last start failed: etcd ended with exit code 4" in local.run("status").stdout


def test_purge_does_not_remove_what_is_no_cluster(local: Local) -> None:
    local.layout.root.mkdir()
    precious = local.layout.root / "thesis.txt"
    precious.touch()
    line = one_line_error(local.run("down", "--purge"))
    assert "does not look like the state of a local cluster" in line
    assert precious.exists()


def test_binaries_says_where_each_program_is(local: Local) -> None:
    argv = [str(PROGRAM), "local", "binaries"]
    result = subprocess.run(
        argv, env=local.environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 6
    assert all(shutil.which(line) for line in result.stdout.splitlines())
