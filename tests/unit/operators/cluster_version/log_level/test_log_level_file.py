"""The configuration file: which contents count, and what a follower does about each."""

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge

from quarterdeck import log as logs
from quarterdeck.operators.cluster_version.log_level.config_file import (
    MAX_BYTES,
    InvalidConfigFile,
    decide_by_file,
    level_in,
)
from quarterdeck.operators.cluster_version.log_level.file_controller import ConfigFile
from quarterdeck.operators.cluster_version.log_level.levels import LEVELS

HEAD = "apiVersion: operator.openshift.io/v1alpha1\nkind: ClusterVersionOperator\n"
NAMED = HEAD + "metadata: {name: cluster}\n"


def asking(level: str) -> str:
    return f"{NAMED}spec:\n  operatorLogLevel: {level}\n"


class Followed:
    """A file that is followed, one look at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wakes = 0
        self._registry = CollectorRegistry()
        gauge = Gauge("invalid", "As in the operator.", registry=self._registry)
        self._file = ConfigFile(path, gauge, self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def look(self) -> None:
        """Look often enough to act on what is there now."""
        self._file.look()
        self._file.look()

    def look_once(self) -> None:
        self._file.look()

    def invalid(self) -> bool:
        return self._registry.get_sample_value("invalid") == 1.0


@pytest.fixture
def followed(tmp_path: Path, written: io.StringIO) -> Followed:
    """A file at Debug that was read once."""
    found = Followed(tmp_path / "config.yaml")
    found.path.write_text(asking("Debug"))
    found.look()
    assert logs.verbosity() == logs.DEBUG
    return found


def errors(written: io.StringIO) -> list[str]:
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    return [line["why"] for line in lines if line["level"] == "error"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_manifest_asks_for_its_level(level: str) -> None:
    assert level_in(asking(level).encode()) == level
    manifest = {
        "apiVersion": "operator.openshift.io/v1alpha1",
        "kind": "ClusterVersionOperator",
        "metadata": {"name": "cluster", "labels": {"a": "b"}},
        "spec": {"operatorLogLevel": level, "later": 1},
        "status": {"observedGeneration": 3},
    }
    assert level_in(f"{json.dumps(manifest)}\n".encode()) == level


@pytest.mark.parametrize("spec", ["spec: {}", "spec: {operatorLogLevel: ''}"])
def test_a_manifest_without_a_level_asks_for_normal(spec: str) -> None:
    assert level_in(f"{NAMED}{spec}\n".encode()) == "Normal"


FOREIGN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster}\nspec: {}\n"
REFUSED = [
    pytest.param(b"", "0 documents", id="empty"),
    pytest.param(asking("Debug")[:30].encode(), "apiVersion", id="truncated in its first line"),
    pytest.param(HEAD.encode(), "metadata.name: None", id="truncated before its name"),
    pytest.param(NAMED.encode(), "spec: None", id="truncated before its spec"),
    pytest.param(f"{NAMED}spec:".encode(), "spec: None", id="truncated in its spec"),
    pytest.param(f"{NAMED}spec:\n  operatorLogLevel:".encode(), "None: choose", id="no value yet"),
    pytest.param(asking("Trac").encode(), "'Trac': choose one of Normal", id="no level"),
    pytest.param(asking("TraceAll")[:-4].encode(), "no end: write all", id="half a level"),
    pytest.param(asking("Trace")[:-1].encode(), "no end: write all", id="no line break"),
    pytest.param(asking("[Trace]").encode(), "['Trace']: choose", id="a list"),
    pytest.param(asking("{").encode(), "line 6: not YAML", id="no YAML"),
    pytest.param(asking("a: b: c").encode(), "line 5", id="no YAML either"),
    pytest.param((asking("Debug") + "---\n" + asking("Trace")).encode(), "2 documents", id="two"),
    pytest.param(b"- 1\n", "write a ClusterVersionOperator manifest", id="a list alone"),
    pytest.param(b"\xff\xfe\x00", "byte 0 is not UTF-8", id="no text"),
    pytest.param(b"\x00", "line 1", id="a control character"),
    pytest.param(asking("Trace").encode() + b"#" * (2 << 20), "more than 1048576 b", id="2 MB"),
    pytest.param(FOREIGN.encode(), "apiVersion: 'v1': this release reads only", id="another kind"),
    pytest.param(
        asking("Trace").replace("v1alpha1", "v1").encode(),
        "apiVersion: 'operator.openshift.io/v1': this release reads only "
        "operator.openshift.io/v1alpha1",
        id="another apiVersion",
    ),
    pytest.param(
        asking("Trace").replace("name: cluster", "name: other").encode(),
        "metadata.name: 'other': this release reads only cluster",
        id="another name",
    ),
]


@pytest.mark.parametrize(("content", "why"), REFUSED)
def test_a_file_that_is_no_configuration_says_why(content: bytes, why: str) -> None:
    with pytest.raises(InvalidConfigFile, match=re.escape(why)) as caught:
        level_in(content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("content", "why"), REFUSED)
def test_the_last_good_level_stays_and_one_line_says_why(
    followed: Followed, written: io.StringIO, content: bytes, why: str
) -> None:
    followed.path.write_bytes(content)
    for _ in range(5):
        followed.look()
    assert logs.verbosity() == logs.DEBUG
    assert followed.invalid()
    (line,) = errors(written)
    assert why in line
    followed.path.write_text(asking("Trace"))
    followed.look()
    assert logs.verbosity() == logs.TRACE
    assert not followed.invalid()
    assert written.getvalue().count("configuration file valid again") == 1


def _remove(path: Path) -> None:
    path.unlink()


def _make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_remove, "No such file or directory"),
        (_make_directory, "not a regular file"),
        (_make_pipe, "not a regular file"),
        (_make_loop, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file_keeps_the_last_good_level(
    followed: Followed, written: io.StringIO, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(followed.path)
    for _ in range(5):
        followed.look()
    assert logs.verbosity() == logs.DEBUG
    assert followed.invalid()
    (line,) = errors(written)
    assert why in line
    if followed.path.is_dir():
        followed.path.rmdir()
    else:
        followed.path.unlink(missing_ok=True)
    followed.path.write_text(asking("Debug"))
    followed.look()
    assert not followed.invalid()


def test_a_file_that_may_not_be_read_keeps_the_last_good_level(
    followed: Followed, written: io.StringIO
) -> None:
    """It is tried again, although the file does not change when its reader may read it."""
    followed.path.chmod(0)
    followed.path.parent.chmod(0o755)
    as_root = os.geteuid() == 0
    if as_root:
        os.seteuid(65534)
    try:
        for _ in range(5):
            followed.look()
        # The directories above may be closed to that user too.
        (line,) = errors(written)
        assert "Permission denied" in line
        assert followed.invalid()
        assert logs.verbosity() == logs.DEBUG
    finally:
        if as_root:
            os.seteuid(0)
    if not as_root:
        followed.path.chmod(0o600)
    followed.look()
    assert not followed.invalid()


def test_the_target_of_a_link_counts(tmp_path: Path, written: io.StringIO) -> None:
    """As a kubelet replaces the files of a ConfigMap: the link `..data` gets another target."""
    volume = tmp_path / "volume"
    volume.mkdir()

    def publish(generation: str, level: str) -> None:
        (volume / generation).mkdir()
        (volume / generation / "config.yaml").write_text(asking(level))
        (volume / "..data_new").symlink_to(generation)
        (volume / "..data_new").rename(volume / "..data")

    publish("..1", "Debug")
    (volume / "config.yaml").symlink_to("..data/config.yaml")
    followed = Followed(volume / "config.yaml")
    followed.look()
    assert logs.verbosity() == logs.DEBUG
    publish("..2", "TraceAll")
    followed.look()
    assert logs.verbosity() == logs.TRACE_ALL
    assert errors(written) == []
    assert followed.wakes == 2


def test_a_file_that_is_being_written_is_not_read(followed: Followed, written: io.StringIO) -> None:
    """What changed since the last look may be incomplete; half a level may be another one."""
    whole = asking("TraceAll")
    for end in range(len(NAMED), len(whole), 7):
        followed.path.write_text(whole[:end])
        followed.look_once()
        assert logs.verbosity() == logs.DEBUG
    followed.path.write_text(whole)
    followed.look_once()
    assert logs.verbosity() == logs.DEBUG
    followed.look_once()
    assert logs.verbosity() == logs.TRACE_ALL
    assert errors(written) == []


def test_without_a_file_the_start_up_verbosity_holds(tmp_path: Path, written: io.StringIO) -> None:
    logs.set_verbosity(3)
    followed = Followed(tmp_path / "config.yaml")
    followed.look()
    assert logs.verbosity() == 3
    (line,) = errors(written)
    assert "No such file" in line
    followed.path.write_text(asking("Debug"))
    followed.look()
    assert logs.verbosity() == logs.DEBUG


def test_a_settled_file_is_read_once(followed: Followed, written: io.StringIO) -> None:
    so_far = written.getvalue()
    for _ in range(10):
        followed.look()
    assert written.getvalue() == so_far
    assert followed.wakes == 1


@given(level=st.sampled_from([None, *LEVELS]), startup=st.integers(0, 10))
def test_a_file_never_lowers_the_verbosity_of_the_start(level: str | None, startup: int) -> None:
    decision = decide_by_file(level, startup)
    assert decision.verbosity >= startup
    assert decision.verbosity == startup or decision.verbosity == LEVELS[level or ""]


SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(list(LEVELS))
ANYTHING = st.recursive(
    SCALARS, lambda some: st.lists(some) | st.dictionaries(st.text(), some), max_leaves=10
)
MANIFESTS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.just("operator.openshift.io/v1alpha1") | ANYTHING,
        "kind": st.just("ClusterVersionOperator") | ANYTHING,
        "metadata": st.just({"name": "cluster"}) | ANYTHING,
        "spec": st.fixed_dictionaries({"operatorLogLevel": SCALARS}) | ANYTHING,
    },
)
CONTENTS = (
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass"))
    | MANIFESTS.map(lambda value: f"{json.dumps(value)}\n".encode())
    | st.builds(
        lambda start, end: asking("TraceAll").encode()[start:end],
        st.integers(0, 100),
        st.integers(0, 150),
    )
)


@given(CONTENTS)
def test_no_content_is_more_than_refused(content: bytes) -> None:
    """A level, or a reason on one line: never another exception."""
    try:
        said = level_in(content)
    except InvalidConfigFile as error:
        said = str(error)
    assert said in LEVELS or (": " in said and "\n" not in said)


@pytest.mark.parametrize("level", LEVELS)
def test_a_truncated_file_is_refused_wherever_it_ends(level: str) -> None:
    """The beginning of TraceAll is Trace."""
    for end in range(len(asking(level))):
        with pytest.raises(InvalidConfigFile):
            level_in(asking(level)[:end].encode())


def test_the_largest_file_is_as_large_as_a_config_map() -> None:
    manifest = asking("Debug").encode()
    assert level_in(manifest + b"#" * (MAX_BYTES - len(manifest) - 1) + b"\n") == "Debug"
