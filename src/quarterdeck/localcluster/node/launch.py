"""What a container is started with, put together: variables, volumes, mounts, user.

Each part is decided elsewhere; this knows where on disk they meet.
"""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from quarterdeck.api.meta import Key, Object
from quarterdeck.localcluster.node.environment import (
    Sources,
    UnresolvedError,
    command,
    environment,
)
from quarterdeck.localcluster.node.host import RealHost
from quarterdeck.localcluster.node.images import Image
from quarterdeck.localcluster.node.mounts import View, plan_mounts
from quarterdeck.localcluster.node.named import Name, NamedObjects
from quarterdeck.localcluster.node.podrun import PodRun
from quarterdeck.localcluster.node.sandbox import Sandbox, User
from quarterdeck.localcluster.node.settings import NodeSettings
from quarterdeck.localcluster.node.unsupported import security_context
from quarterdeck.localcluster.node.volume_files import (
    binds_of,
    make_empty_directory,
    owner_of,
    write_files,
)
from quarterdeck.localcluster.node.volumes import FROM_FILES, files_of, kind_of, references
from quarterdeck.log import get_logger

log = get_logger("node.launch")

LONGEST_HOSTNAME = 63


class Launcher:
    """Makes sandboxes for the containers of this node."""

    def __init__(self, settings: NodeSettings, named: NamedObjects) -> None:
        self._settings = settings
        self._named = named
        self._host = RealHost()
        # Often a link into /run, which containers get empty.
        self._names = _existing(PurePosixPath(os.path.realpath("/etc/resolv.conf")))

    def sandbox(self, spec: dict[str, Any], pod: Object, run: PodRun, image: Image) -> Sandbox:
        """Everything that the container is started with; what it refers to must be there."""
        sources = self._sources(pod, run)
        self._write_volumes(pod, run, sources)
        variables = environment(spec, sources, self._base(pod, image))
        context = security_context(spec, pod)
        view = View(
            volumes=binds_of(spec, pod, run.volumes, variables),
            masked=self._settings.masked,
            kept=(*self._settings.installation.directories, *self._names),
            read_only_root=bool(context.get("readOnlyRootFilesystem")),
        )
        return Sandbox(
            command=command(spec, list(image.entrypoint), variables),
            hostname=(pod["spec"].get("hostname") or pod["metadata"]["name"])[:LONGEST_HOSTNAME],
            variables=variables,
            mounts=plan_mounts(view, self._host),
            working_directory=spec.get("workingDir") or "/",
            root=self._settings.root,
            user=self._user(context),
        )

    def refresh_volumes(self, pod: Object, run: PodRun) -> None:
        """Bring the files of a pod that runs up to date; what is missing leaves them as is."""
        if not run.volumes.exists():
            return
        try:
            self._write_volumes(pod, run, self._sources(pod, run))
        except (UnresolvedError, OSError) as error:
            log.v(4).info("volumes stay as they are", pod=run.uid, error=str(error))

    def _sources(self, pod: Object, run: PodRun) -> Sources:
        namespace = pod["metadata"]["namespace"]
        needed = references(pod)
        return Sources(
            pod=pod,
            config_maps=self._found("ConfigMap", namespace, needed.config_maps),
            secrets=self._found("Secret", namespace, needed.secrets),
            pod_ip=run.pod_ip,
            capacity=self._settings.capacity,
        )

    def _found(self, kind: str, namespace: str, names: frozenset[str]) -> dict[str, Object]:
        found = {name: self._named.get(Name(kind, Key(namespace, name))) for name in names}
        return {name: it for name, it in found.items() if it is not None}

    def _write_volumes(self, pod: Object, run: PodRun, sources: Sources) -> None:
        owner = owner_of(pod, root=self._settings.root)
        run.volumes.mkdir(parents=True, exist_ok=True)
        for volume in pod["spec"].get("volumes") or []:
            directory = run.volumes / volume["name"]
            kind = kind_of(volume)
            if kind == "emptyDir":
                make_empty_directory(directory, owner)
            elif kind in FROM_FILES:
                write_files(directory, files_of(volume, sources, run.tokens.values), owner)

    def _base(self, pod: Object, image: Image) -> Mapping[str, str]:
        """What every container has in its environment."""
        host, port = self._settings.api_host, str(self._settings.api_port)
        return {
            **image.variables,
            "HOSTNAME": pod["metadata"]["name"],
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
        }

    def _user(self, context: dict[str, Any]) -> User | None:
        """Whom the container runs as; None for us."""
        uid = context.get("runAsUser")
        if not self._settings.root or not uid:
            return None
        groups = set(context.get("supplementalGroups") or [])
        if "fsGroup" in context:
            groups.add(context["fsGroup"])
        return User(uid, context.get("runAsGroup", 0), tuple(sorted(groups)))


def _existing(path: PurePosixPath) -> tuple[PurePosixPath, ...]:
    return (path,) if Path(path).exists() else ()
