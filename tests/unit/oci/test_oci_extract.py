"""Only plain files of /release-manifests leave a layer, whatever is in it."""

import contextlib
import gzip
import io
import random
import resource
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oci_bytes import Dribble, entry, tar

from quarterdeck.oci.errors import OciError
from quarterdeck.oci.extract import Limits, extract_release
from quarterdeck.oci.inflate import MAX_MEMBERS, Inflated
from quarterdeck.oci.layers import Entry, layer_bytes

GOOD = entry("release-manifests/0000_50_a_b.yaml", b"kind: A\n")


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def extracted(tmp_path: Path, layer: bytes, limits: Limits | None = None) -> dict[str, bytes]:
    target = tmp_path / "release"
    target.mkdir()
    made = extract_release(io.BytesIO(layer), target, limits or Limits())
    found = {
        str(path.relative_to(target)): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file()
    }
    assert tuple(sorted(found)) == made.files
    assert sum(map(len, found.values())) == made.size
    return found


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_only_the_release_is_unpacked(tmp_path: Path, pack: type[bytes], format_: int) -> None:
    """Other files of the layer are skipped, also links and devices among them."""
    name = "n" * (90 if format_ == tarfile.USTAR_FORMAT else 120)
    long = f"release-manifests/component/{name}.yaml"
    layer = tar(
        entry("etc/passwd", b"root"),
        entry("etc/link", type=tarfile.SYMTYPE, linkname="/etc"),
        entry("dev/null", type=tarfile.CHRTYPE),
        entry("release-manifests", type=tarfile.DIRTYPE),
        GOOD,
        entry(long, b"x" * 1000),
        entry("./release-manifests/image-references", b"{}"),
        format_=format_,
    )
    assert extracted(tmp_path, pack(layer)) == {
        "0000_50_a_b.yaml": b"kind: A\n",
        f"component/{name}.yaml": b"x" * 1000,
        "image-references": b"{}",
    }


def test_our_own_layer_is_read_in_pieces(tmp_path: Path) -> None:
    _, data = layer_bytes([Entry(path="release-manifests/c/a.yaml", content=b"a" * 70_000)])
    made = extract_release(Dribble(data), tmp_path)
    assert made.files == ("c/a.yaml",)
    assert (tmp_path / "c/a.yaml").read_bytes() == b"a" * 70_000


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        pytest.param(
            entry("release-manifests/a.yaml", type=tarfile.SYMTYPE, linkname="/etc/shadow"),
            "a symbolic link",
            id="symbolic link",
        ),
        pytest.param(
            entry("release-manifests/a.yaml", type=tarfile.LNKTYPE, linkname="etc/shadow"),
            "a hard link",
            id="hard link",
        ),
        pytest.param(
            entry("release-manifests", type=tarfile.SYMTYPE, linkname="/"),
            "a symbolic link",
            id="the directory itself is a link",
        ),
        pytest.param(
            entry("release-manifests/d", type=tarfile.CHRTYPE, devmajor=1, devminor=8),
            "a character device",
            id="character device",
        ),
        pytest.param(
            entry("release-manifests/d", type=tarfile.BLKTYPE), "a block device", id="block device"
        ),
        pytest.param(entry("release-manifests/p", type=tarfile.FIFOTYPE), "a pipe", id="pipe"),
        pytest.param(
            entry("release-manifests/../../etc/cron.d/x", b"x"), "leads out", id="dots inside"
        ),
        pytest.param(entry("../x", b"x"), "leads out", id="dots at the start"),
        pytest.param(entry("release-manifests/..", type=tarfile.DIRTYPE), "leads out", id="dots"),
        pytest.param(entry("/release-manifests/x.yaml", b"x"), "leads out", id="absolute"),
        pytest.param(entry("release-manifests", b"x"), "a file instead", id="a file in its place"),
        pytest.param(GOOD, "there twice", id="a file twice"),
        pytest.param(
            entry("release-manifests/0000_50_a_b.yaml/x.yaml", b"x"),
            "both a file and a directory",
            id="a file as a directory",
        ),
        pytest.param(entry("release-manifests/a\nb.yaml", b"x"), "plain text", id="line break"),
        pytest.param(entry("release-manifests/.wh.a.yaml"), "deletion", id="whiteout"),
        pytest.param(entry("release-manifests/a/b/c/d.yaml", b"x"), "too deep", id="deep"),
        pytest.param(entry("release-manifests/" + "n" * 256, b"x"), "too long", id="a long name"),
    ],
)
def test_hostile_entries_refuse_the_layer(
    tmp_path: Path, bad: tuple[tarfile.TarInfo, bytes], told: str
) -> None:
    with pytest.raises(OciError, match=told):
        extracted(tmp_path, gzip.compress(tar(GOOD, bad)))
    assert names_in(tmp_path) == ["release"]
    assert names_in(tmp_path / "release") == ["0000_50_a_b.yaml"]


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "0000_50_a_b.yaml").symlink_to("/tmp/elsewhere")
    with pytest.raises(OciError, match="already"):
        extract_release(io.BytesIO(tar(GOOD)), tmp_path)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(file=4), "larger than"),
        (Limits(total=20), "all files together"),
        (Limits(files=2), "more than 2 files"),
        (Limits(layer=4096), "unpacks to more"),
    ],
)
def test_limits(tmp_path: Path, limits: Limits, told: str) -> None:
    files = [entry(f"release-manifests/{n}.yaml", b"kind: A\n") for n in range(3)]
    with pytest.raises(OciError, match=told):
        extracted(tmp_path, gzip.compress(tar(*files)), limits)


def test_a_layer_without_a_release_is_told(tmp_path: Path) -> None:
    with pytest.raises(OciError, match="no release image"):
        extracted(tmp_path, tar(entry("etc/passwd", b"x")))


class Zeros:
    """A gzip stream of zeros that has no end, and counts what was taken of it."""

    def __init__(self, start: bytes) -> None:
        self._pending = start
        self._piece = gzip.compress(bytes(1 << 20))
        self.taken = 0

    def read(self, size: int, /) -> bytes:
        if not self._pending:
            self._pending = self._piece
        data, self._pending = self._pending[:size], self._pending[size:]
        self.taken += len(data)
        return data


@pytest.mark.parametrize("inside", [True, False], ids=["in a manifest", "beside the release"])
def test_a_layer_bomb_ends_at_the_limit(tmp_path: Path, inside: bool) -> None:
    """A gigabyte of zeros takes a few megabytes of memory, and no disk."""
    name = "release-manifests/a.yaml" if inside else "zeros"
    header = tarfile.TarInfo(name)
    header.size = 1 << 30
    source = Zeros(gzip.compress(tar(GOOD, end=False) + header.tobuf()))
    tracemalloc.start()
    try:
        with pytest.raises(OciError, match=r"larger than 4 MiB|unpacks to more than 128 MiB"):
            extract_release(source, tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 << 20
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == len(GOOD[1])
    assert source.taken < 1 << 20


@pytest.mark.parametrize("type_", [tarfile.XHDTYPE, tarfile.XGLTYPE, b"L", b"K"])
def test_a_header_that_claims_a_gigabyte_is_not_read(tmp_path: Path, type_: bytes) -> None:
    header = tarfile.TarInfo("release-manifests/a.yaml")
    header.size, header.type = 1 << 30, type_
    with pytest.raises(OciError, match="extended header of 1073741824 bytes"):
        extract_release(Zeros(gzip.compress(header.tobuf())), tmp_path)


def test_many_empty_gzip_members_end(tmp_path: Path) -> None:
    with pytest.raises(OciError, match="something else"):
        extract_release(io.BytesIO(gzip.compress(b"") * (MAX_MEMBERS + 2)), tmp_path)


@pytest.mark.parametrize("cut", [10, 100, -1, -9, -600])
def test_a_layer_that_is_cut_off_is_told(tmp_path: Path, cut: int) -> None:
    noise = random.Random(1).randbytes(2000)
    packed = gzip.compress(tar(GOOD, entry("release-manifests/b.yaml", noise)))
    with pytest.raises(OciError, match="cut off"):
        extracted(tmp_path, packed[:cut])


def test_a_plain_layer_that_is_cut_off_is_told(tmp_path: Path) -> None:
    with pytest.raises(OciError, match="cut off"):
        extracted(tmp_path, tar(GOOD, end=False))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x28\xb5\x2f\xfd" + bytes(100), "zstd"),
        (b"", "cut off"),
        (b"x" * 600, "no number"),
        (b"7" * 600, "broken header"),
        (gzip.compress(tar(GOOD)) + b"more", "something else"),
        (gzip.compress(tar(GOOD))[:-4] + b"oops", "cannot be unpacked"),
    ],
    ids=["zstd", "empty", "text", "digits", "more after the end", "wrong length in the trailer"],
)
def test_what_is_no_layer_is_told(tmp_path: Path, data: bytes, told: str) -> None:
    with pytest.raises(OciError, match=told):
        extracted(tmp_path, data)


def test_sparse_files_are_refused(tmp_path: Path) -> None:
    info, content = entry("release-manifests/a.yaml", b"x")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)}
    with pytest.raises(OciError, match="sparse"):
        extracted(tmp_path, tar((info, content)))


NAMES = st.sampled_from(
    ["release-manifests", "..", ".", "", "a.yaml", "b", "/", "etc", "\x00", "\n", "ü", ".wh.x"]
)
TYPES = st.sampled_from([b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"S", b"D", b"\0"])


@given(st.lists(st.tuples(st.lists(NAMES, max_size=5), TYPES, st.binary(max_size=40)), max_size=6))
def test_nothing_is_written_outside_whatever_the_layer_has(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[list[str], bytes, bytes]]
) -> None:
    """A layer is refused, or all that it writes are files and directories in the directory."""
    root = tmp_path_factory.mktemp("outside")
    (root / "release").mkdir()
    layer = tar(*(entry("/".join(parts), content, type=type_) for parts, type_, content in entries))
    with contextlib.suppress(OciError):
        extract_release(io.BytesIO(layer), root / "release")
    assert names_in(root) == ["release"]
    for path in (root / "release").rglob("*"):
        assert not path.is_symlink()
        assert path.is_file() or path.is_dir()


@given(st.binary(max_size=3000), st.integers(0, 3000))
def test_damage_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    """Any bytes anywhere in a layer end in OciError, never in another exception."""
    layer = tar(GOOD, entry("release-manifests/b.yaml", b"y" * 600))
    target = tmp_path_factory.mktemp("damaged")
    with contextlib.suppress(OciError):
        extract_release(io.BytesIO(layer[:at] + noise + layer[at + len(noise) :]), target)


@given(st.binary(max_size=200_000), st.lists(st.integers(1, 70_000), min_size=1, max_size=5))
def test_inflating_gives_what_was_packed(data: bytes, sizes: list[int]) -> None:
    half = len(data) // 2
    packed = gzip.compress(data[:half]) + gzip.compress(data[half:])
    inflated = Inflated(Dribble(packed, sizes), limit=len(data))
    assert b"".join(iter(lambda: inflated.read(sizes[0]), b"")) == data


def test_the_limit_of_open_files_is_not_reached(tmp_path: Path) -> None:
    """Each file is closed before the next: thousands of manifests need no more descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = [entry(f"release-manifests/{n}.yaml", b"a") for n in range(500)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(200, hard), hard))
    try:
        assert len(extracted(tmp_path, tar(*files))) == 500
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
