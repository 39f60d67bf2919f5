"""Fields of a pod that this node does not support; reported in events, and listed in the docs.

Each rule returns a text about the pod, or an empty one.
"""

from collections.abc import Callable, Iterator
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.containers import all_containers

_POD_FIELDS = {
    "hostPID": "the pod has process numbers of its own",
    "hostIPC": "the pod has its own IPC namespace",
    "shareProcessNamespace": "each container has process numbers of its own",
    "dnsConfig": "name resolution is the machine's",
    "hostAliases": "/etc/hosts is the machine's",
    "runtimeClassName": "there is one way to run here",
    "ephemeralContainers": "none can be added",
    "setHostnameAsFQDN": "the host name is the pod's name",
}

_OWN_DNS = ("None", "ClusterFirstWithHostNet")
"""The values of `dnsPolicy` that ask for other DNS servers than the machine's. `ClusterFirst` does
too, but is every pod's default."""


def unsupported(pod: Object, *, root: bool) -> list[str]:
    """The unsupported fields of the pod, one line for each."""
    found = [f"spec.{field}: {why}" for field, why in _POD_FIELDS.items() if pod["spec"].get(field)]
    found += _pod_faults(pod, root=root)
    found += [
        f"container {container['name']}: {fault}"
        for container in all_containers(pod)
        for rule in _RULES
        if (fault := rule(container, pod, root))
    ]
    found += _volume_faults(pod)
    return found


def _pod_faults(pod: Object, *, root: bool) -> Iterator[str]:
    spec = pod["spec"]
    context = spec.get("securityContext") or {}
    if spec.get("hostUsers") is False:
        yield "spec.hostUsers: false: the pod's users are the machine's"
    if spec.get("dnsPolicy") in _OWN_DNS:
        yield f"spec.dnsPolicy {spec['dnsPolicy']}: name resolution is the machine's"
    if context.get("sysctls"):
        names = ", ".join(each["name"] for each in context["sysctls"])
        yield f"spec.securityContext.sysctls ({names}): the machine's are left as they are"
    groups = [field for field in ("supplementalGroups", "fsGroup") if context.get(field)]
    if groups and not root:
        yield f"spec.securityContext: {', '.join(groups)}: only root can take other groups"


def _host_ports(container: dict[str, Any], pod: Object, _root: bool) -> str:
    if pod["spec"].get("hostNetwork"):
        return ""
    ports = [str(each["hostPort"]) for each in container.get("ports") or [] if each.get("hostPort")]
    return f"ports.hostPort ({', '.join(ports)}): only the pod's address has it" if ports else ""


def _profiles(container: dict[str, Any], pod: Object, _root: bool) -> str:
    wanted = security_context(container, pod)
    asked = [
        field
        for field in ("appArmorProfile", "seccompProfile")
        if (wanted.get(field) or {}).get("type") == "Localhost"
    ]
    return f"securityContext.{', '.join(asked)}: no profile is loaded" if asked else ""


def _propagation(container: dict[str, Any], _pod: Object, _root: bool) -> str:
    mounts = container.get("volumeMounts") or []
    asked = [each["name"] for each in mounts if each.get("mountPropagation", "None") != "None"]
    return f"mountPropagation ({', '.join(asked)}): mounts are private" if asked else ""


def _limits(container: dict[str, Any], _pod: Object, _root: bool) -> str:
    limits = (container.get("resources") or {}).get("limits") or {}
    return f"resources.limits ({', '.join(sorted(limits))}): not enforced" if limits else ""


def _user(container: dict[str, Any], pod: Object, root: bool) -> str:
    wanted = security_context(container, pod)
    if not root and ("runAsUser" in wanted or "runAsGroup" in wanted):
        return "runAsUser, runAsGroup: only root can take other users; runs as yours"
    if root and wanted.get("runAsNonRoot") and not wanted.get("runAsUser"):
        return "runAsNonRoot: images have no users here; runs as root, without capabilities"
    return ""


def _privileges(container: dict[str, Any], pod: Object, _root: bool) -> str:
    wanted = security_context(container, pod)
    if wanted.get("privileged"):
        return "securityContext.privileged: never"
    added = (wanted.get("capabilities") or {}).get("add") or []
    return f"capabilities.add ({', '.join(added)}): all are dropped" if added else ""


def _hooks(container: dict[str, Any], _pod: Object, _root: bool) -> str:
    hooked = "postStart" in (container.get("lifecycle") or {})
    return "lifecycle.postStart: not run" if hooked else ""


def _grpc(container: dict[str, Any], _pod: Object, _root: bool) -> str:
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    asking = [probe for probe in probes if "grpc" in (container.get(probe) or {})]
    return f"{', '.join(asking)}: grpc is not spoken; the probe fails" if asking else ""


def _terminal(container: dict[str, Any], _pod: Object, _root: bool) -> str:
    return "stdin, tty: not offered" if container.get("stdin") or container.get("tty") else ""


_RULES: tuple[Callable[[dict[str, Any], Object, bool], str], ...] = (
    _limits,
    _user,
    _privileges,
    _hooks,
    _grpc,
    _terminal,
    _host_ports,
    _profiles,
    _propagation,
)


def security_context(container: dict[str, Any], pod: Object) -> dict[str, Any]:
    """The container's security context, merged over its pod's."""
    return {
        **(pod["spec"].get("securityContext") or {}),
        **(container.get("securityContext") or {}),
    }


def _volume_faults(pod: Object) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or []:
        empty = volume.get("emptyDir") or {}
        if empty.get("sizeLimit"):
            yield f"volume {volume['name']}: emptyDir.sizeLimit: not enforced"
        if empty.get("medium"):
            yield f"volume {volume['name']}: emptyDir.medium {empty['medium']}: is on disk"
