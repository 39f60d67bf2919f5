"""The commands of docs/registries.md, with a real registry and a real control plane."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.documents import Shell, commands
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
)
from tests.places import DOCS
from tests.registry_process import RunningRegistry, free_port, listens, running_registry
from tests.release_images import new_key, public_pem, release_image, signatures_of

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.oci.archive import Named, write_archive
from quarterdeck.oci.layers import Image
from quarterdeck.oci.signature import signature_tag
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

PAGE = (DOCS / "registries.md").read_text()
NAME = "quarterdeck-release"


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RunningRegistry]:
    with running_registry(tmp_path) as one:
        yield one


@pytest.fixture
def shell(tmp_path: Path, control_plane: ControlPlane, control_plane_binaries: Binaries) -> Shell:
    directory = tmp_path / "shell"
    directory.mkdir()
    environment = {"KUBECONFIG": str(control_plane.kubeconfig)}
    return Shell(directory, environment, control_plane_binaries)


def like(expected: str, seen: str) -> bool:
    """Whether an output is as the page shows it, where `...` stands for anything."""
    pattern = r"(?s:.*?)".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern.replace(r"\ ", r" +"), seen.strip()) is not None


def test_every_command_shows_what_the_page_shows(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    real: RunningRegistry,
    shell: Shell,
    tmp_path: Path,
) -> None:
    here, place = cluster.namespace, tmp_path / "shell"
    key = new_key()
    (place / "key.pub").write_bytes(public_pem(key))
    (place / "pull-secret.json").write_bytes(real.secret.read_bytes())
    (place / "ca.crt").write_bytes(real.tls.ca.read_bytes())

    def release(version: str, *previous: str) -> Image:
        manifest = config_map("cargo", here, version=version)
        return release_image(version, {"0000_10_cargo_00.json": manifest}, previous)

    def own(text: str) -> str:
        tag = signature_tag(one.descriptor.digest)
        text = text.replace("sha256-....sig", tag).replace("registry.example.test", real.address)
        return text.replace("127.0.0.1:8080", service)

    one = release("1.1.0", "1.0.0")
    service = f"127.0.0.1:{free_port()}"
    repository = f"{real.address}/{NAME}"
    write_archive(place / "release-1.1.0.tar", Named(image=one, reference=NAME))
    for name in ("quarterdeck", "router"):
        write_archive(place / f"{name}.tar", Named(image=release("0.0.1"), reference=name))
    signature = signatures_of(repository, one.descriptor.digest, key)
    write_archive(place / "signature.tar", Named(image=signature, reference=NAME))
    # The channel of the page, with the digests of this run.
    (channel,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    served = yaml.safe_load(channel)
    for entry, image in zip(
        served["releases"], (one, release("1.2.0"), release("1.2.1")), strict=True
    ):
        entry["image"] = f"{repository}@{image.descriptor.digest}"
    (place / "channels").mkdir()
    (place / "channels" / "stable-1.yaml").write_text(yaml.safe_dump(served))

    releases.write("1.0.0", {"0000_10_cargo_00.json": config_map("cargo", here, version="1.0.0")})
    run_cvo("1.0.0", *real.options, f"--verification-key={place / 'key.pub'}")
    cluster.wait_release("1.0.0")
    *shown, (serve, _) = commands(PAGE)
    process = shell.start(own(serve), tmp_path / "service.log")
    try:
        eventually(lambda: listens(service), "the update service listens")
        for command, output in shown:
            done = shell.succeed(own(command))
            expected = own(textwrap.dedent(output))
            assert like(expected, done.stdout), f"{command}:\n{done.stdout}\n{expected}"
    finally:
        process.terminate()
        process.wait()
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.1.0"}
