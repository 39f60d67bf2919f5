"""The examples of `docs/authors` on a real API server."""

import asyncio
import importlib
import os
import re
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.documents import example_files, example_module
from tests.places import DOCS

from quarterdeck.api.definition import definition
from quarterdeck.controller import Manager, Operator, Process, ProcessSettings
from quarterdeck.kube import load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.definitions import install_definitions
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.kinds import install_kinds
from quarterdeck.testing.namespaces import create_namespace, delete_namespace
from quarterdeck.testing.waiting import eventually, eventually_async

AUTHORS = DOCS / "authors"

# The tests of the page on testing are collected from here, with the fixtures that they name.
globals().update(
    {
        name: value
        for name, value in example_module(AUTHORS / "testing.md", "test_examples.py").items()
        if name.startswith("test_")
    }
)


def test_the_documented_program_runs_the_documented_task(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    for page, name in (("timers-and-tasks.md", "load.py"), ("running.md", "program.py")):
        (tmp_path / name).write_text(example_files(AUTHORS / page)[name])
    objects = ApiObjects(control_plane.requests(), "default")
    program = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)},
    )
    try:
        written = eventually(lambda: objects.find("configmap", "load"), "the ConfigMap exists")
        assert written["data"]["load"].isdigit()
        objects.delete("configmap", "load")
        eventually(lambda: objects.find("configmap", "load"), "the ConfigMap exists again")
        program.send_signal(signal.SIGTERM)
        assert program.wait(30) == 0
    finally:
        program.kill()
        program.wait()
        objects.delete("configmap", "load")


@asynccontextmanager
async def running(
    control_plane: ControlPlane, setup: Callable[[Manager], None]
) -> AsyncIterator[None]:
    """Run an example as the administrator, in this process."""
    operator = Operator(
        name="example",
        setup=setup,
        field_manager="example-operator",
        lease_namespace="default",
        lease_name="",
    )
    settings = ProcessSettings(identity="test", probe_address="127.0.0.1:0")
    process = Process([operator], load_kubeconfig(control_plane.kubeconfig), settings)
    task = asyncio.create_task(process.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def note(namespace: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "samples.quarterdeck.dev/v1alpha1",
        "kind": "Note",
        "metadata": {"name": "hello", "namespace": namespace, **metadata},
        "spec": {"text": "hi"},
    }


@pytest.mark.usefixtures("crds")
async def test_a_chosen_namespace_may_be_created_later(
    control_plane: ControlPlane, namespace: str
) -> None:
    module = example_module(AUTHORS / "namespaces.md", "chosen.py")
    late = f"{namespace}-late"
    settings = module["Settings"](note_namespaces=f"{namespace},{late}")
    objects = ApiObjects(control_plane.requests(), late)
    async with running(control_plane, lambda manager: module["setup"](manager, settings)):
        objects.apply(note(namespace))
        await eventually_async(
            lambda: objects.find("configmap", "hello", namespace=namespace), "the ConfigMap"
        )
        create_namespace(control_plane.requests(), late)
        objects.apply(note(late))
        await eventually_async(lambda: objects.find("configmap", "hello"), "the late ConfigMap")
    delete_namespace(control_plane, late)


@pytest.mark.usefixtures("crds")
async def test_the_checksum_follows_the_named_secret(
    control_plane: ControlPlane, namespace: str
) -> None:
    module = example_module(AUTHORS / "foreign-kinds.md", "checksum.py")
    objects = ApiObjects(control_plane.requests(), namespace)

    def checksum() -> str:
        annotations = objects.get("note", "hello")["metadata"]["annotations"]
        return str(annotations.get(module["CHECKSUM"], ""))

    def secret(value: str) -> dict[str, Any]:
        metadata = {"name": "token", "namespace": namespace}
        data = {"value": value}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}

    objects.apply(note(namespace, annotations={module["SECRET"]: "token"}))
    async with running(control_plane, module["setup"]):
        wanted = module["checksum"](objects.apply(secret("b25l")))
        await eventually_async(lambda: checksum() == wanted, "the first checksum")
        wanted = module["checksum"](objects.apply(secret("dHdv")))
        await eventually_async(lambda: checksum() == wanted, "the second checksum")


@pytest.mark.usefixtures("crds")
async def test_a_finalizer_keeps_a_note_until_its_copy_is_gone(
    control_plane: ControlPlane, namespace: str
) -> None:
    module = example_module(AUTHORS / "finalizers.md", "archive.py")
    objects = ApiObjects(control_plane.requests(), namespace)
    everywhere = "/apis/samples.quarterdeck.dev/v1alpha1/notes"
    copy = f"{namespace}.hello"

    def no_notes() -> bool:
        return not control_plane.requests().send("GET", everywhere).json()["items"]

    # The example puts its finalizer on every note, and nobody would remove it after this test.
    await eventually_async(no_notes, "the notes of earlier tests are gone")
    create_namespace(control_plane.requests(), "archive")
    async with running(control_plane, module["setup"]):
        objects.apply(note(namespace))
        await eventually_async(
            lambda: objects.find("configmap", copy, namespace="archive"), "the copy"
        )
        assert objects.get("note", "hello")["metadata"]["finalizers"] == ["example.com/archive"]
        objects.delete("note", "hello")
        await eventually_async(no_notes, "the note is gone")
        assert objects.find("configmap", copy, namespace="archive") is None
    delete_namespace(control_plane, "archive")


async def test_the_pods_of_a_node_are_counted(control_plane: ControlPlane, namespace: str) -> None:
    module = example_module(AUTHORS / "indexes.md", "pod_count.py")
    objects = ApiObjects(control_plane.requests(), namespace)

    def counted() -> str:
        annotations = objects.get("node", "simulated")["metadata"].get("annotations", {})
        return str(annotations.get(module["ANNOTATION"], ""))

    async with running(control_plane, module["setup"]):
        await eventually_async(counted, "the pods are counted")
    objects.patch("node", "simulated", {"metadata": {"annotations": {module["ANNOTATION"]: None}}})


async def test_the_moved_operator_takes_over_what_exists(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A CRD has the docstrings of its types, which are read from their file.
    code = example_files(DOCS / "comparison.md")["website.py"]
    (tmp_path / "website.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    module = vars(importlib.import_module("website"))
    install_definitions(control_plane.requests(), [definition(module["WEBSITES"])])
    objects = ApiObjects(control_plane.requests(), namespace)
    where = {"name": "home", "namespace": namespace}
    kind = {"apiVersion": "example.com/v1", "kind": "Website"}
    website = objects.apply({**kind, "metadata": where, "spec": {"html": "<p>new"}})
    owner = {**kind, "name": "home", "uid": website["metadata"]["uid"], "controller": True}
    page = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**where, "labels": module["LABELS"], "ownerReferences": [owner]},
        "data": {"index.html": "<p>old", "more": "of the old operator"},
    }
    objects.apply(page)
    async with running(control_plane, module["setup"]):
        wanted = {"index.html": "<p>new", "more": "of the old operator"}
        await eventually_async(
            lambda: objects.get("configmap", "home")["data"] == wanted, "the page is new"
        )
        await eventually_async(
            lambda: objects.get("websites", "home").get("status") == {"page": "home"}, "the status"
        )
    objects.delete("crd", "websites.example.com")


async def test_a_website_follows_its_secret_and_leaves_no_mirror(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "websites.py").write_text(example_files(AUTHORS / "website.md")["websites.py"])
    monkeypatch.syspath_prepend(tmp_path)
    module = vars(importlib.import_module("websites"))
    install_kinds(control_plane, [definition(module["WEBSITES"])])
    create_namespace(control_plane.requests(), module["MIRRORS"])
    objects = ApiObjects(control_plane.requests(), namespace)
    where = {"name": "shop", "namespace": namespace}
    kind, mirror = "websites.web.example.com", f"{namespace}.shop"

    def ready() -> tuple[str, str] | None:
        conditions = objects.get(kind, "shop").get("status", {}).get("conditions")
        return (conditions[0]["status"], conditions[0]["reason"]) if conditions else None

    def write_page(text: str) -> None:
        metadata = {"name": "pages", "namespace": namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        objects.apply({**secret, "data": {"index.html": b64encode(text.encode()).decode()}})

    def published(text: str) -> bool:
        copies = (
            objects.find("configmap", "shop"),
            objects.find("configmap", mirror, namespace=module["MIRRORS"]),
        )
        return all(one is not None and one["data"] == {"index.html": text} for one in copies)

    spec = {"host": "shop.example.com", "contentSecret": "pages"}
    async with running(control_plane, module["setup"]):
        objects.apply(
            {"apiVersion": "web.example.com/v1", "kind": "Website", "metadata": where, "spec": spec}
        )
        await eventually_async(lambda: ready() == ("False", "NoSecret"), "the missing Secret")
        for text in ("one", "two"):
            write_page(text)
            await eventually_async(lambda: published(text), f"the page {text}")  # noqa: B023
        await eventually_async(lambda: ready() == ("True", "Published"), "the website is ready")
        service = objects.get("service", "shop")
        assert service["metadata"]["annotations"] == {"web.example.com/host": "shop.example.com"}
        objects.delete("configmap", "shop")
        await eventually_async(lambda: published("two"), "the deleted ConfigMap exists again")
        objects.delete(kind, "shop")
        await eventually_async(lambda: objects.find(kind, "shop") is None, "no website")
        assert objects.find("configmap", mirror, namespace=module["MIRRORS"]) is None
        for owned in ("configmap", "service"):
            await eventually_async(
                lambda: objects.find(owned, "shop") is None,  # noqa: B023
                f"no {owned}",
            )
    delete_namespace(control_plane, module["MIRRORS"])
    objects.delete("crd", kind)


@contextmanager
def kopf_running(control_plane: ControlPlane, namespace: str, directory: Path) -> Iterator[None]:
    """Run the document's kopf operator, with kopf from the package registry."""
    text = (DOCS / "comparison.md").read_text()
    (version,) = set(re.findall(r"kopf (\d[\d.]*\d)", text))
    venv = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    packages = [f"kopf=={version}", "kubernetes"]
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", *packages], check=True)
    with (directory / "kopf.log").open("wb") as log:
        program = subprocess.Popen(
            [venv / "bin" / "kopf", "run", "--namespace", namespace, "kopf_website.py"],
            cwd=directory,
            env={**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)},
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        program.terminate()
        program.wait(60)


@pytest.mark.soak
async def test_the_documented_kopf_operator_runs_and_ours_takes_its_objects_over(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in example_files(DOCS / "comparison.md").items():
        (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    module = vars(importlib.import_module("website"))
    install_definitions(control_plane.requests(), [definition(module["WEBSITES"])])
    objects = ApiObjects(control_plane.requests(), namespace)
    where = {"name": "home", "namespace": namespace}
    website = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": where}
    objects.apply(website | {"spec": {"html": "<p>by kopf"}})
    with kopf_running(control_plane, namespace, tmp_path):
        page = await eventually_async(lambda: objects.find("configmap", "home"), "kopf's page")
        assert page["data"] == {"index.html": "<p>by kopf"}
        await eventually_async(
            lambda: objects.get("websites", "home").get("status", {}).get("page"), "its status"
        )
    objects.patch("websites", "home", {"spec": {"html": "<p>by ours"}})
    async with running(control_plane, module["setup"]):
        await eventually_async(
            lambda: objects.get("configmap", "home")["data"] == {"index.html": "<p>by ours"},
            "the page is ours",
        )
    objects.delete("crd", "websites.example.com")


@pytest.mark.usefixtures("crds")
async def test_certificates_are_kept_once_their_kind_is_installed(
    control_plane: ControlPlane, namespace: str
) -> None:
    module = example_module(AUTHORS / "foreign-kinds.md", "with_certificates.py")
    objects = ApiObjects(control_plane.requests(), namespace)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": module["CRD"]},
        "spec": {
            "group": "cert-manager.io",
            "names": {"kind": "Certificate", "plural": "certificates"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    objects.apply(note(namespace))
    async with running(control_plane, module["setup"]):
        await asyncio.to_thread(install_definitions, control_plane.requests(), [crd])
        await eventually_async(
            lambda: objects.find("certificates.cert-manager.io", "hello"), "the certificate"
        )
    objects.delete("crd", module["CRD"])
