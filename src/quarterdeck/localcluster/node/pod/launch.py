"""Builds a container's sandbox from its variables, volumes, mounts and user.

Other modules decide each part; this one knows their paths on disk.
"""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from quarterdeck.api.meta import Key, Object
from quarterdeck.localcluster.node.images import ImageProcess
from quarterdeck.localcluster.node.pod.environment import (
    UnresolvedError,
    VariableSources,
    command,
    environment,
)
from quarterdeck.localcluster.node.pod.named import Name, PodReferences
from quarterdeck.localcluster.node.pod.run import PodRun
from quarterdeck.localcluster.node.pod.text_checks import check_spec, check_variables
from quarterdeck.localcluster.node.pod.unsupported import security_context
from quarterdeck.localcluster.node.sandbox.arguments import Sandbox, User
from quarterdeck.localcluster.node.sandbox.host import RealHost
from quarterdeck.localcluster.node.sandbox.isolation import NEEDED_IN_PROOT, Isolation
from quarterdeck.localcluster.node.sandbox.mounts import View, plan_mounts
from quarterdeck.localcluster.node.sandbox.places import other_places
from quarterdeck.localcluster.node.sandbox.proot_view import proot_view
from quarterdeck.localcluster.node.settings import NodeSettings
from quarterdeck.localcluster.node.volumes.contents import FROM_FILES, files_of, kind_of, references
from quarterdeck.localcluster.node.volumes.files import (
    binds_of,
    make_empty_directory,
    owner_of,
    write_files,
)
from quarterdeck.localcluster.node.volumes.opened import Hidden
from quarterdeck.log import get_logger

log = get_logger("node.launch")

MAX_HOSTNAME = 63


class Launcher:
    """Builds sandboxes for the containers of this node."""

    def __init__(self, settings: NodeSettings, named: PodReferences) -> None:
        self._settings = settings
        self._named = named
        self._host = RealHost()
        self._for_proot = NEEDED_IN_PROOT if settings.isolation is Isolation.PROOT else ()
        # Often a link into /run, which is empty in containers.
        self._names = _existing(PurePosixPath(os.path.realpath("/etc/resolv.conf")))

    def sandbox(
        self,
        spec: dict[str, Any],
        pod: Object,
        run: PodRun,
        image: ImageProcess,
        *,
        static: bool = False,
    ) -> Sandbox:
        """The container's sandbox; raises if a reference cannot be resolved."""
        check_spec(spec, pod)
        sources = self._sources(pod, run)
        variables = environment(spec, sources, self._base(pod, image))
        check_variables(variables)
        self._write_volumes(pod, run, sources)
        context = security_context(spec, pod)
        view = View(
            volumes=binds_of(spec, pod, run.volumes, variables, self._hidden(pod, static=static)),
            masked=self._masked(),
            kept=(*self._settings.installation.directories, *self._names, *self._for_proot),
            read_only_root=bool(context.get("readOnlyRootFilesystem")),
        )
        in_proot = self._settings.isolation is Isolation.PROOT
        mounts = plan_mounts(view, self._host, open_root=in_proot)
        scratch = os.path.realpath(run.directory / "scratch" / spec["name"])
        return Sandbox(
            command=command(spec, list(image.entrypoint), variables),
            hostname=(pod["spec"].get("hostname") or pod["metadata"]["name"])[:MAX_HOSTNAME],
            variables=variables,
            mounts=mounts,
            working_directory=spec.get("workingDir") or "/",
            root=self._settings.root,
            user=self._user(context),
            proot=proot_view(mounts, scratch, self._host) if in_proot else None,
        )

    def refresh_volumes(self, pod: Object, run: PodRun) -> None:
        """Update the files of a running pod; if a reference is missing, they stay unchanged."""
        if not run.volumes.exists():
            return
        try:
            self._write_volumes(pod, run, self._sources(pod, run))
        except (UnresolvedError, OSError) as error:
            log.v(4).info("volumes stay as they are", pod=run.uid, error=str(error))

    def _sources(self, pod: Object, run: PodRun) -> VariableSources:
        namespace = pod["metadata"]["namespace"]
        needed = references(pod)
        return VariableSources(
            pod=pod,
            config_maps=self._found("ConfigMap", namespace, needed.config_maps),
            secrets=self._found("Secret", namespace, needed.secrets),
            pod_ip=run.pod_ip,
            capacity=self._settings.capacity,
        )

    def _found(self, kind: str, namespace: str, names: frozenset[str]) -> dict[str, Object]:
        found = {name: self._named.get(Name(kind, Key(namespace, name))) for name in names}
        return {name: it for name, it in found.items() if it is not None}

    def _write_volumes(self, pod: Object, run: PodRun, sources: VariableSources) -> None:
        owner = owner_of(pod, root=self._settings.root)
        run.volumes.mkdir(parents=True, exist_ok=True)
        for volume in pod["spec"].get("volumes") or []:
            directory = run.volumes / volume["name"]
            kind = kind_of(volume)
            if kind == "emptyDir":
                make_empty_directory(directory, owner)
            elif kind in FROM_FILES:
                write_files(directory, files_of(volume, sources, run.tokens.values), owner)

    def _hidden(self, pod: Object, *, static: bool) -> Hidden:
        """The paths that the pod must not mount; a static pod may mount its own credentials."""
        own = []
        if static and self._settings.credentials:
            name = pod["metadata"]["name"].removesuffix(f"-{self._settings.name}")
            own.append(self._settings.credentials / name)
        return Hidden(self._masked(), self._settings.shown, own)

    def _masked(self) -> list[PurePosixPath]:
        """What no pod may see, wherever it is mounted; mounts may change at any time."""
        mounted = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
        own = [PurePosixPath(os.path.realpath(path)) for path in self._settings.masked]
        return [*self._settings.masked, *(it for path in own for it in other_places(path, mounted))]

    def _base(self, pod: Object, image: ImageProcess) -> Mapping[str, str]:
        """The variables of every container."""
        host, port = self._settings.api_host, str(self._settings.api_port)
        return {
            **image.variables,
            "HOSTNAME": pod["metadata"]["name"],
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
        }

    def _user(self, context: dict[str, Any]) -> User | None:
        """The user of the container; None for our own."""
        groups = set(context.get("supplementalGroups") or [])
        if context.get("fsGroup") is not None:
            groups.add(context["fsGroup"])
        uid, gid = context.get("runAsUser") or 0, context.get("runAsGroup") or 0
        if not self._settings.root or not (uid or gid or groups):
            return None
        return User(uid, gid, tuple(sorted(groups)))


def _existing(path: PurePosixPath) -> tuple[PurePosixPath, ...]:
    return (path,) if Path(path).exists() else ()
