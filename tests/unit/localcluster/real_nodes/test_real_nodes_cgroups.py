"""The cgroups of real nodes, on directories that stand for hierarchies."""

import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.real_nodes import cgroups

MOUNTINFO = """\
30 23 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_hierarchies_of_both_versions_are_found_once() -> None:
    found = cgroups.hierarchies(MOUNTINFO)
    assert found == (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/unified"))


def test_clusters_have_names_of_their_own(tmp_path: Path) -> None:
    assert cgroups.prefix_of(tmp_path / "a") != cgroups.prefix_of(tmp_path / "b")


def test_a_cgroup_is_made_in_every_hierarchy(tmp_path: Path) -> None:
    roots = tuple(tmp_path / name for name in ("cpu", "memory"))
    for root in roots:
        root.mkdir()
    cgroups.create("ours-node-1", roots)
    cgroups.create("ours-node-1", roots)
    assert [path.name for path in cgroups.leftovers("ours-", roots)] == ["ours-node-1"] * 2


def test_only_our_cgroups_are_removed_with_all_below_them(tmp_path: Path) -> None:
    (tmp_path / "ours-node-1" / "pods" / "pod1").mkdir(parents=True)
    (tmp_path / "other" / "pods").mkdir(parents=True)
    cgroups.remove("ours-", (tmp_path,))
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_runs_out_of_sight_is_told_and_nobody_else_is_killed(tmp_path: Path) -> None:
    """The kernel shows it as process 0."""
    (tmp_path / "ours-node-1").mkdir()
    (tmp_path / "ours-node-1" / "cgroup.procs").write_text("0\n0\n")
    code = (
        "import sys; from pathlib import Path; "
        "from quarterdeck.localcluster.real_nodes import cgroups; "
        "cgroups.REMOVE_TIMEOUT = 0.1; cgroups.remove('ours-', (Path(sys.argv[1]),))"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, start_new_session=True
    )
    assert done.returncode == 1
    assert "something still runs in it" in done.stderr


def test_an_empty_cpuset_is_filled_from_the_one_above(tmp_path: Path) -> None:
    root = tmp_path / "cpuset"
    below = root / "ours-node-1"
    below.mkdir(parents=True)
    (root / "notify_on_release").write_text("0")
    for file, value in (("cpuset.cpus", "0-1"), ("cpuset.mems", "0")):
        (root / file).write_text(value)
        (below / file).write_text("")
    cgroups.create("ours-node-1", (root,))
    assert (below / "cpuset.cpus").read_text() == "0-1"
    assert (below / "cpuset.mems").read_text() == "0"


def test_missing_controllers_are_named(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory")
    with pytest.raises(LocalClusterError, match="cpuset, pids"):
        cgroups.create("ours-node-1", (tmp_path,))


def test_a_hierarchy_without_controllers_is_fine(tmp_path: Path) -> None:
    for file in ("cgroup.controllers", "cgroup.subtree_control"):
        (tmp_path / file).write_text("\n")
    cgroups.create("ours-node-1", (tmp_path,))
    assert (tmp_path / "ours-node-1").is_dir()
