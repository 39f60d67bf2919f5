"""The declaration of an operator; its options, roles, manifests and payload follow from it.

    OPERATOR = Declaration(
        name="sample",
        title="The sample operator",
        setup="quarterdeck.operators.sample.controller:setup",
        namespace="quarterdeck-sample",
        account="sample-operator",
        delivery=Deployed(),
    )

Every command that lists operators reads all declarations, so a declaration refers to code as
`module:attribute` and does not import it.
"""

import importlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from quarterdeck.api.custom_resource import SELF_MANAGED
from quarterdeck.api.times import parse_duration
from quarterdeck.delivery.checks import (
    LABEL_LIMIT,
    check_cpu,
    check_distinct,
    check_flag,
    check_label,
    check_label_key,
    check_line,
    check_path,
    check_profile,
    check_quantity,
    check_range,
    check_reference,
    check_subdomain,
    check_variable,
)
from quarterdeck.delivery.placement import NodeLabel

PodSecurity = Literal["restricted", "baseline", "privileged"]
"""A pod security standard of Kubernetes."""


class PolicyRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of RBAC: verbs on resources."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only the objects with these names; a create cannot be limited to names."""
    namespace: str = ""
    """Only in this namespace; in all if empty."""

    def __post_init__(self) -> None:
        """Refuse a rule that grants nothing."""
        if not self.resources or not self.verbs:
            raise ValueError(f"rights: {self}: name resources and verbs")
        if self.names and "create" in self.verbs:
            raise ValueError(f"rights: {self}: grant create by a rule of its own, without names")
        if self.namespace:
            check_label("rights.namespace", self.namespace)


class SeldomUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Rights that an operator needs although most runs do not use them, and why."""

    group: str
    resource: str
    """With the subresource, as `notes/status`."""
    verbs: tuple[str, ...]
    why: str

    def __post_init__(self) -> None:
        """Refuse what gives no reason."""
        check_line("seldom_used.why", self.why)

    def covers(self, group: str, resource: str, verb: str) -> bool:
        """Whether this is about that verb on that resource."""
        return (self.group, self.resource) == (group, resource) and verb in self.verbs


class HostPath(msgspec.Struct, frozen=True):
    """A directory of the node that the operator may read."""

    name: str
    path: str
    mount: str

    def __post_init__(self) -> None:
        """Refuse values that a pod cannot have."""
        check_label("host_paths.name", self.name)
        check_path("host_paths.path", self.path)
        check_path("host_paths.mount", self.mount)


class EmptyDir(msgspec.Struct, frozen=True):
    """A directory that the operator may write, and that goes with its pod."""

    name: str
    mount: str
    limit: str
    """The most bytes in it, as a quantity."""

    def __post_init__(self) -> None:
        """Refuse values that a pod cannot have."""
        check_label("empty_dirs.name", self.name)
        check_path("empty_dirs.mount", self.mount)


class OptionalFile(msgspec.Struct, frozen=True):
    """A file from a key of a Secret or ConfigMap in the operator's namespace, if that is there."""

    source: Literal["secret", "configMap"]
    name: str
    """The name of the Secret or ConfigMap."""
    key: str
    path: str
    """The file's name in the directory."""

    def __post_init__(self) -> None:
        """Refuse values that a pod cannot have."""
        check_subdomain("optional_files.name", self.name)
        check_line("optional_files.key", self.key)
        check_line("optional_files.path", self.path)


class OptionalFiles(msgspec.Struct, frozen=True):
    """A directory of files that an administrator may bring, at any time."""

    name: str
    mount: str
    files: tuple[OptionalFile, ...]

    def __post_init__(self) -> None:
        """Refuse values that a pod cannot have."""
        check_label("optional_files.name", self.name)
        check_path("optional_files.mount", self.mount)


class InPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What a Deployment has only in a payload."""

    image: str = ""
    args: tuple[str, ...] = ()
    host_paths: tuple[HostPath, ...] = ()
    empty_dirs: tuple[EmptyDir, ...] = ()
    optional_files: tuple[OptionalFiles, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values that a pod cannot have."""
        names = [one.name for one in self.host_paths] + [one.name for one in self.empty_dirs]
        names += [one.name for one in self.optional_files]
        check_distinct("host_paths.name", names)


class Deployed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The operator runs from a Deployment."""

    replicas: int = 2
    leader_election: bool = True
    """Whether one of the replicas leads; without, each works by itself."""
    image: str = "quarterdeck"
    other_images: tuple[str, ...] = ()
    """The images of its operands, as its variables and objects name them; a release has its own."""
    priority_class: str = ""
    """The name of its pods' PriorityClass, as `system-cluster-critical`; none if empty."""
    preferred_nodes: tuple[NodeLabel, ...] = ()
    """Prefer nodes with one of these labels; `placement.CONTROL_PLANE` for the control plane."""
    required_nodes: tuple[NodeLabel, ...] = ()
    """Run only on nodes with one of these labels; on any node if empty."""
    tolerated_taints: tuple[str, ...] = ()
    """The keys of taints that its pods tolerate; `placement.CONTROL_PLANE_ROLES` for those of the
    control plane, without which its nodes are preferred in vain."""
    cpu: str = "10m"
    """The CPU request."""
    memory: str = "64Mi"
    """The memory request."""
    memory_limit: str = "512Mi"
    """Three times the memory for 10,000 objects and as many owned by them (docs/performance.md); an
    idle operator needs 52 MB."""
    args: tuple[str, ...] = ()
    """In addition to the arguments of every operator."""
    env: tuple[tuple[str, str], ...] = ()
    in_payload: InPayload | None = InPayload()
    """None for an operator that is in no payload: an administrator installs it where it is needed,
    from its own manifests."""

    def __post_init__(self) -> None:
        """Refuse values that a Deployment cannot have."""
        check_range("delivery.replicas", self.replicas, 1, 99)
        for image in self.other_images:
            check_line("delivery.other_images", image)
        if self.priority_class:
            check_subdomain("delivery.priority_class", self.priority_class)
        for taint in self.tolerated_taints:
            check_label_key("delivery.tolerated_taints", taint)
        _check_container(self)


class StaticPodDelivery(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The operator runs as a static pod on the control plane's nodes, and is in no payload."""

    user: str
    """The user of its client certificate."""
    port: int
    """The port of its probes and metrics; unique, because the pod uses the host's network."""
    certificate_lifetime: str = "90d"
    """The lifetime of its client certificates, as `90d`. It asks for the next one when half of that
    is over."""
    account: str = ""
    """Where nodes are not one's own, the operator runs from a Deployment instead: the name of that,
    and of its ServiceAccount. Empty if it cannot."""
    account_namespace: str = ""
    """The namespace of that Deployment."""
    image: str = "quarterdeck"
    container: str = "operator"
    cpu: str = "10m"
    memory: str = "64Mi"
    memory_limit: str = "256Mi"
    """More than three times the memory of the staleness checker for 1,000 operators."""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse values that a static pod cannot have."""
        check_line("delivery.user", self.user)
        check_range("delivery.port", self.port, 1, 65535)
        check_label("delivery.container", self.container)
        if parse_duration(self.certificate_lifetime) is None:
            raise ValueError(
                f"delivery.certificate_lifetime: {self.certificate_lifetime!r}: write it like 90d"
            )
        if self.account:
            check_label("delivery.account", self.account)
            check_label("delivery.account_namespace", self.account_namespace)
        _check_container(self)


class PayloadPart(msgspec.Struct, frozen=True, kw_only=True):
    """Kinds and objects of an operator at another run level of the payload."""

    name: str
    """The name of its file in `deploy/<operator>`, and of its files in the payload."""
    run_level: int
    kinds: tuple[str, ...] = ()
    """`module:attribute` of each CustomResource."""
    objects: str = ""
    """`module:attribute` of a tuple of objects. They are created if they are missing, and then
    belong to the administrator."""
    kept: bool = False
    """Whether the objects belong to the release instead, which keeps them as they are here: the
    account and role of an operand, for example."""

    def __post_init__(self) -> None:
        """Refuse a part that cannot have a file of its own."""
        check_label("parts.name", self.name)
        if self.name in ("rbac", "deployment", "static-pod"):
            raise ValueError(f"parts.name: {self.name!r}: the operator's own file is called so")
        check_range("parts.run_level", self.run_level, 0, 99)
        for reference in (*self.kinds, *filter(None, [self.objects])):
            check_reference("parts", reference)


class PodMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Pods with metrics that no Service selects: those with a label, in one namespace."""

    name: str
    """The name of their PodMonitor."""
    namespace: str
    label: str
    """The key of a label of the pods, with any value."""
    port: str
    """The name of the port that serves /metrics."""

    def __post_init__(self) -> None:
        """Refuse what selects no pods."""
        check_label("operand_metrics.name", self.name)
        check_label("operand_metrics.namespace", self.namespace)
        check_label_key("operand_metrics.label", self.label)
        check_label("operand_metrics.port", self.port)


class Hint(msgspec.Struct, frozen=True):
    """A command for the user to try, with an introduction."""

    text: str
    command: tuple[str, ...]
    """Its arguments; `{NAME}` becomes the number of that port of `LocalObjects`."""
    program: str = "quarterdeck"
    """`quarterdeck`, which gets the local cluster's kubeconfig; `kubectl`, which is the local
    cluster's own; or another program of this machine."""

    def with_ports(self, ports: Mapping[str, int]) -> tuple[str, ...]:
        """The arguments with the numbers of the ports."""
        words = self.command
        for name, number in ports.items():
            words = tuple(word.replace(f"{{{name}}}", str(number)) for word in words)
        return words


class LocalObjects(msgspec.Struct, frozen=True, kw_only=True):
    """Objects that a local cluster gets with the operator, so that there is something to try.

    They are created if they are missing, and then belong to the administrator.
    """

    objects: str
    """`module:function`; it gets the number of each port by name, and returns the objects."""
    ports: tuple[str, ...] = ()
    """Names of ports on 127.0.0.1. Free ones are chosen once, and stored with the cluster's
    state."""
    ready: str = ""
    """The condition of the objects that `quarterdeck local up` waits for; none if empty."""

    def __post_init__(self) -> None:
        """Refuse what cannot be found or stored."""
        check_reference("local.objects.objects", self.objects)
        for port in self.ports:
            check_label("local.objects.ports", port)
        check_distinct("local.objects.ports", self.ports)


class LocalOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option of `quarterdeck local up` that sets a field of an object of the operator."""

    flag: str
    help: str
    choices: tuple[str, ...]
    kind: str
    field: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse an option that sets nothing."""
        check_flag("local.options.flag", self.flag)
        if not self.choices or not self.field or not all((*self.choices, *self.field)):
            raise ValueError(f"local.options: {self.flag}: name choices, and the field to set")


class Local(msgspec.Struct, frozen=True, kw_only=True):
    """What is different in a local cluster, and what `quarterdeck local up` prints."""

    args: tuple[str, ...] = ()
    """Each replaces the delivered argument with the same flag."""
    text: str = ""
    """The text after the title when the cluster is ready."""
    replicas: int = 0
    """The replicas of its Deployment; 0 for as many as are delivered."""
    show_replicas: bool = False
    """Whether to show the replicas of its Deployment, and the leader."""
    objects: LocalObjects | None = None
    hints: tuple[Hint, ...] = ()
    options: tuple[LocalOption, ...] = ()


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of one operator."""

    name: str
    """The name for `--operator`; its roles and its field manager are named after it."""
    title: str
    """The start of a sentence about it: `The sample operator`."""
    setup: str
    """`module:function`; it is called with a Manager, and the settings if there are some."""
    settings: str = ""
    """`module:struct`; its fields become options of `quarterdeck run`."""
    namespace: str
    """The namespace of the operator and of its Lease, unless POD_NAMESPACE is set."""
    other_namespaces: tuple[str, ...] = ()
    """More namespaces that are delivered with the operator, for its operands."""
    pod_security: PodSecurity = "restricted"
    """The pod security standard that its own namespace enforces."""
    only_own_namespace: bool = False
    """Whether the delivered operator sees and writes namespaced objects only in its own namespace:
    its Deployment says `--namespace`, and its roles allow no more."""
    only_namespaces: tuple[str, ...] = ()
    """The same for several namespaces: its Deployment says `--namespace` for each of them."""
    account: str = ""
    """The name of its Lease, ServiceAccount and Deployment; empty without leader election."""
    cluster_operator: str = ""
    """The name of its ClusterOperator."""
    delivery: Deployed | StaticPodDelivery | None = None
    """None if it is only run by hand."""
    kinds: tuple[str, ...] = ()
    """`module:attribute` of each CustomResource that is delivered with it."""
    parts: tuple[PayloadPart, ...] = ()
    rights: tuple[PolicyRule, ...] = ()
    """In addition to the rights that follow from `setup`, with the settings in its Deployment."""
    seldom_used: tuple[SeldomUsed, ...] = ()
    """The rights that a run of the operator need not use; `testing.unused_rights` lists others."""
    cluster_admin: bool = False
    """Whether it may do everything, because it applies any object."""
    run_level: int = 50
    """The run level of its manifests in a payload: lower ones are applied first."""
    component: str = ""
    """The component in the names of its payload files; by default the operator's name."""
    capability: str = ""
    """The capability that must be enabled for a payload to include it."""
    profiles: tuple[str, ...] = SELF_MANAGED
    """The cluster profiles whose payload includes it."""
    applies_payload: bool = False
    """Whether it applies payloads, and so must run before."""
    alerts: str = ""
    """`module:attribute` of a tuple of `alerts.Alert`, in addition to those of every operator."""
    operand_metrics: tuple[PodMetrics, ...] = ()
    """The pods of its operands that have metrics."""
    part_of: str = ""
    """The product that it belongs to, in front of its name as field manager and in its roles."""
    local: Local = Local()

    def __post_init__(self) -> None:
        """Refuse what cannot be delivered, with field, value and remedy."""
        check_label("name", self.name)
        check_line("title", self.title)
        if self.part_of:
            check_label("part_of", self.part_of)
        check_label("namespace", self.namespace)
        for namespace in self.other_namespaces:
            check_label("other_namespaces", namespace)
        if self.account:
            check_label("account", self.account)
        elif isinstance(self.delivery, Deployed):
            raise ValueError("account: '': name the ServiceAccount and the Deployment")
        for namespace in self.only_namespaces:
            check_label("only_namespaces", namespace)
        if self.only_own_namespace and self.only_namespaces:
            raise ValueError(
                "only_own_namespace: True: `only_namespaces` names them all; use one of both"
            )
        if self.watched_namespaces and isinstance(self.delivery, StaticPodDelivery):
            field = "only_own_namespace" if self.only_own_namespace else "only_namespaces"
            value = getattr(self, field)
            raise ValueError(f"{field}: {value}: a static pod does not get it; select by namespace")
        if len(self.field_manager) > LABEL_LIMIT:
            most = LABEL_LIMIT - len(self.field_manager) + len(self.name)
            raise ValueError(f"name: {self.name!r}: use at most {most} characters")
        if self.cluster_operator:
            check_subdomain("cluster_operator", self.cluster_operator)
        if self.component:
            check_label("component", self.component)
        if self.capability:
            check_profile("capability", self.capability)
        for profile in self.profiles:
            check_profile("profiles", profile)
        check_range("run_level", self.run_level, 0, 99)
        check_distinct("parts.name", (part.name for part in self.parts))
        flags = [f"--{self.name}", *(option.flag for option in self.local.options)]
        check_distinct("local.options.flag", flags)
        check_reference("setup", self.setup)
        for reference in (*filter(None, [self.settings, self.alerts]), *self.kinds):
            check_reference("settings, alerts or kinds", reference)

    def as_deployment(self) -> "Declaration | None":
        """The operator in a Deployment, where it is no static pod; None if it cannot be in one."""
        static = self.delivery
        if isinstance(static, Deployed):
            return self
        if not isinstance(static, StaticPodDelivery) or not static.account:
            return None
        deployed = Deployed(
            leader_election=False,
            image=static.image,
            priority_class="system-cluster-critical",
            cpu=static.cpu,
            memory=static.memory,
            memory_limit=static.memory_limit,
            args=static.args,
            env=static.env,
            in_payload=None,
        )
        return msgspec.structs.replace(
            self,
            delivery=deployed,
            account=static.account,
            namespace=static.account_namespace,
        )

    @property
    def is_in_payload(self) -> bool:
        """Whether a payload has the operator."""
        return isinstance(self.delivery, Deployed) and self.delivery.in_payload is not None

    @property
    def watched_namespaces(self) -> tuple[str, ...]:
        """The only namespaces that the delivered operator watches; empty for all."""
        return (self.namespace,) if self.only_own_namespace else self.only_namespaces

    @property
    def field_manager(self) -> str:
        """The field manager of the operator's writes."""
        return f"{self.part_of}-{self.name}" if self.part_of else self.account or self.name


def _check_container(delivery: Deployed | StaticPodDelivery) -> None:
    check_line("delivery.image", delivery.image)
    check_cpu("delivery.cpu", delivery.cpu)
    check_quantity("delivery.memory", delivery.memory)
    check_quantity("delivery.memory_limit", delivery.memory_limit)
    for name, _ in delivery.env:
        check_variable("delivery.env", name)


def load(reference: str) -> Any:
    """Import the module and return the attribute of `module:attribute`."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
