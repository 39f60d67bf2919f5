"""What real nodes need of the machine is named in one line."""

import os
from pathlib import Path

import pytest

from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.real_nodes import requirements


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory of root's programs, with all that are needed."""
    for name in (*requirements.PROGRAMS, "bridge", "host-local", "loopback", "portmap"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "_SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "CNI_PROGRAMS", str(tmp_path))
    monkeypatch.setattr(requirements, "_BRIDGE_FILTER", tmp_path)
    return tmp_path


def test_a_machine_with_everything_will_do(programs: Path) -> None:
    found = requirements.check_machine()
    assert (found.runc, found.registry) == (programs / "runc", programs / "docker-registry")


def test_all_missing_packages_are_named(programs: Path) -> None:
    for name in ("nft", "ip", "portmap"):
        (programs / name).unlink()
    with pytest.raises(LocalClusterError) as told:
        requirements.check_machine()
    assert str(told.value) == (
        "real nodes need more packages: apt-get install containernetworking-plugins iproute2 "
        "nftables"
    )


def test_a_missing_kernel_module_is_named(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_BRIDGE_FILTER", programs / "absent")
    with pytest.raises(LocalClusterError, match="modprobe br_netfilter"):
        requirements.check_machine()
