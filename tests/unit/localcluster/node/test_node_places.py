"""Where else on the machine a directory is seen."""

from pathlib import PurePosixPath

import pytest

from quarterdeck.localcluster.node.sandbox.places import other_places

MOUNTS = r"""
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 8:2 / /home rw - ext4 /dev/sda2 rw
31 22 8:2 /user /mnt/user rw - ext4 /dev/sda2 rw
32 22 8:2 /user/state/pki /srv/with\040space rw - ext4 /dev/sda2 rw
33 22 8:2 / /mnt/disk rw - ext4 /dev/sda2 rw
34 22 8:1 /var /mnt/var rw - ext4 /dev/sda1 rw
""".strip()


@pytest.mark.parametrize(
    ("path", "others"),
    [
        (
            "/home/user/state",
            ["/mnt/disk/user/state", "/mnt/user/state", "/srv/with space"],
        ),
        ("/home/other", ["/mnt/disk/other"]),
        ("/var/lib/state", ["/mnt/var/lib/state"]),
        ("/mnt/user/state", ["/home/user/state", "/mnt/disk/user/state", "/srv/with space"]),
        ("/etc/state", []),
    ],
)
def test_other_places(path: str, others: list[str]) -> None:
    assert [str(each) for each in other_places(PurePosixPath(path), MOUNTS)] == others


def test_a_mount_over_another_is_the_one_that_is_seen() -> None:
    mounts = f"{MOUNTS}\n35 30 8:3 /b /home rw - ext4 /dev/sdb rw"
    assert other_places(PurePosixPath("/home/x"), mounts) == []
