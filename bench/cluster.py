"""A real API server of its own for each subject, so that none inherits another's history."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from bench import widgets
from bench.api import Address, Api, RequestFailed
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.certificates import certificate_path, key_path

ESTABLISHED_LIMIT = 30.0


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """An API server that knows Widgets and has none."""

    api: Api
    address: Address
    etcd: Address
    kubeconfig: Path


@contextlib.asynccontextmanager
async def cluster(state: Path) -> AsyncIterator[Cluster]:
    """etcd and an API server, gone after the block.

    Nothing else runs: no garbage collector or scheduler that would take part of the machine. etcd
    answers before its data is on disk, so that the disk's mood is not measured.
    """
    settings = BinarySettings.from_environment(os.environ)
    binaries = await asyncio.to_thread(ensure_binaries, settings)
    plane = ControlPlane(state, binaries, durable=False)
    try:
        await asyncio.to_thread(plane.start, "etcd", "kube-apiserver")
        pki = plane.layout.pki
        address = Address(
            url=plane.url,
            authority=certificate_path(pki, "ca"),
            certificate=certificate_path(pki, "admin"),
            key=key_path(pki, "admin"),
        )
        etcd = Address(
            url=plane.setup.etcd_url,
            authority=certificate_path(pki, "etcd-ca"),
            certificate=certificate_path(pki, "etcd-client"),
            key=key_path(pki, "etcd-client"),
        )
        async with Api.open(address) as api:
            await _install(api)
            yield Cluster(api=api, address=address, etcd=etcd, kubeconfig=plane.kubeconfig)
    finally:
        await asyncio.to_thread(plane.close)


async def _install(api: Api) -> None:
    """The namespace and the kind."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": widgets.NAMESPACE}}
    await api.create("/api/v1/namespaces", namespace)
    await api.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets.definition()
    )
    async with asyncio.timeout(ESTABLISHED_LIMIT):
        while True:
            with contextlib.suppress(RequestFailed, msgspec.DecodeError):
                await api.get(widgets.COLLECTION)
                return
            await asyncio.sleep(0.1)
