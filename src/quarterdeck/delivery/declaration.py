"""What an operator says about itself, once; all that has to know of it is derived from this.

    OPERATOR = Declaration(
        name="sample",
        title="The sample operator",
        setup="quarterdeck.operators.sample.controller:setup",
        namespace="quarterdeck-sample",
        account="sample-operator",
        delivery=Deployed(),
    )

It is read by every command that has to know which operators there are, so it names what is heavy
to import (`module:attribute`) and does not import it.
"""

import importlib
from typing import Any

import msgspec

from quarterdeck.api.custom_resource import SELF_MANAGED
from quarterdeck.delivery.checks import (
    LABEL_LIMIT,
    check_distinct,
    check_flag,
    check_label,
    check_line,
    check_path,
    check_profile,
    check_quantity,
    check_range,
    check_reference,
    check_subdomain,
    check_variable,
)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A right, in RBAC's words."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The only objects that it is about; a create cannot be limited so."""
    namespace: str = ""
    """The only namespace that it is about; all of them when it is empty."""

    def __post_init__(self) -> None:
        """Refuse what would grant nothing."""
        if not self.resources or not self.verbs:
            raise ValueError(f"rights: {self}: name resources and verbs")
        if self.names and "create" in self.verbs:
            raise ValueError(f"rights: {self}: grant create by a rule of its own, without names")
        if self.namespace:
            check_label("rights.namespace", self.namespace)


class HostPath(msgspec.Struct, frozen=True):
    """A directory of the node that the operator may read."""

    name: str
    path: str
    mount: str

    def __post_init__(self) -> None:
        """Refuse what no pod can have."""
        check_label("host_paths.name", self.name)
        check_path("host_paths.path", self.path)
        check_path("host_paths.mount", self.mount)


class InPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What a Deployment has in a payload beside what it has elsewhere."""

    image: str = ""
    args: tuple[str, ...] = ()
    host_paths: tuple[HostPath, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no pod can have."""
        check_distinct("host_paths.name", (one.name for one in self.host_paths))


class Deployed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Runs from a Deployment, which a payload has too."""

    replicas: int = 2
    image: str = "quarterdeck"
    memory: str = "64Mi"
    """What is requested of the node."""
    memory_limit: str = "512Mi"
    """Three times what 10,000 objects and as many that belong to them take (docs/performance.md);
    an idle operator takes 52 MB."""
    args: tuple[str, ...] = ()
    """Beside those that every operator has."""
    env: tuple[tuple[str, str], ...] = ()
    in_payload: InPayload = InPayload()

    def __post_init__(self) -> None:
        """Refuse what no Deployment can have."""
        check_range("delivery.replicas", self.replicas, 1, 99)
        _check_container(self)


class StaticPod(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Runs as a static pod on the control plane's nodes, and is in no payload."""

    user: str
    """Whom its client certificate is for."""
    port: int
    """Where its probes and metrics are served; its own, as the pod is in the host's network."""
    image: str = "quarterdeck"
    container: str = "operator"
    memory: str = "64Mi"
    memory_limit: str = "256Mi"
    """More than three times what the staleness checker takes for 1,000 operators."""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no static pod can have."""
        check_line("delivery.user", self.user)
        check_range("delivery.port", self.port, 1, 65535)
        check_label("delivery.container", self.container)
        _check_container(self)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator brings beside itself, at another run level of the payload."""

    name: str
    """Of its file in `deploy/<operator>`, and of its files in the payload."""
    run_level: int
    kinds: tuple[str, ...] = ()
    """`module:attribute` of each CustomResource."""
    objects: str = ""
    """`module:attribute` of a tuple of objects. They are created where they are missing, and
    belong to the administrator from then on."""

    def __post_init__(self) -> None:
        """Refuse what cannot be a file of its own."""
        check_label("parts.name", self.name)
        if self.name in ("rbac", "deployment", "static-pod"):
            raise ValueError(f"parts.name: {self.name!r}: the operator's own file is called so")
        check_range("parts.run_level", self.run_level, 0, 99)
        for reference in (*self.kinds, *filter(None, [self.objects])):
            check_reference("parts", reference)


class Hint(msgspec.Struct, frozen=True):
    """A command worth knowing, with the words that introduce it."""

    text: str
    command: tuple[str, ...]
    """Of this program; it is given the local cluster's kubeconfig."""


class LocalOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option of `quarterdeck local up` that sets a field of an object of the operator."""

    flag: str
    help: str
    choices: tuple[str, ...]
    kind: str
    field: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no option, or sets nothing."""
        check_flag("local.options.flag", self.flag)
        if not self.choices or not self.field or not all((*self.choices, *self.field)):
            raise ValueError(f"local.options: {self.flag}: name choices, and the field to set")


class Local(msgspec.Struct, frozen=True, kw_only=True):
    """What is different, and what is said, in a local cluster."""

    args: tuple[str, ...] = ()
    """Each takes the place of the delivered one with the same flag."""
    text: str = ""
    """What follows the title when the cluster is ready."""
    show_replicas: bool = False
    """Show the replicas of its Deployment, and which one leads."""
    hints: tuple[Hint, ...] = ()
    options: tuple[LocalOption, ...] = ()


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """One operator."""

    name: str
    """By which it is run (`--operator`); its roles and its field manager are named after it."""
    title: str
    """How a sentence about it begins: `The sample operator`."""
    setup: str
    """`module:function`; given a Manager, and the settings where the operator has some."""
    settings: str = ""
    """`module:struct` of what can be set for it; its fields are options of `quarterdeck run`."""
    namespace: str
    """Where it runs unless POD_NAMESPACE says otherwise; its Lease is there."""
    other_namespaces: tuple[str, ...] = ()
    """Namespaces that come with it beside its own, for its operands."""
    account: str = ""
    """The name of its Lease, ServiceAccount and Deployment; empty where none is elected."""
    cluster_operator: str = ""
    """The ClusterOperator that it reports on."""
    delivery: Deployed | StaticPod | None = None
    """None: it is only run by hand."""
    kinds: tuple[str, ...] = ()
    """`module:attribute` of each CustomResource that comes with it."""
    parts: tuple[Part, ...] = ()
    rights: tuple[Rule, ...] = ()
    """Beside those that follow from what it asks its manager for with its default settings."""
    cluster_admin: bool = False
    """Whether it may do everything, because it applies what it is given."""
    run_level: int = 50
    """When a payload's manifests are applied: lower ones come first."""
    component: str = ""
    """In the names of the payload's files; the operator's name without it."""
    capability: str = ""
    """The capability without which a payload leaves it out."""
    profiles: tuple[str, ...] = SELF_MANAGED
    """The cluster profiles whose payload has it."""
    applies_payload: bool = False
    """Whether it is the one that applies payloads, and so has to be there before."""
    alerts: bool = False
    """Whether `deploy/monitoring` has alerts on it."""
    local: Local = Local()

    def __post_init__(self) -> None:
        """Refuse what could not be delivered, by field, value and remedy."""
        check_label("name", self.name)
        if len(self.field_manager) > LABEL_LIMIT:
            most = LABEL_LIMIT - len(self.field_manager) + len(self.name)
            raise ValueError(f"name: {self.name!r}: use at most {most} characters")
        check_line("title", self.title)
        check_label("namespace", self.namespace)
        for namespace in self.other_namespaces:
            check_label("other_namespaces", namespace)
        if self.account:
            check_label("account", self.account)
        elif isinstance(self.delivery, Deployed):
            raise ValueError("account: '': name the ServiceAccount and the Deployment")
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
        for reference in (*filter(None, [self.settings]), *self.kinds):
            check_reference("settings or kinds", reference)

    @property
    def field_manager(self) -> str:
        """Whose fields the operator's are, on the objects that it applies."""
        return f"quarterdeck-{self.name}"


def _check_container(delivery: Deployed | StaticPod) -> None:
    check_line("delivery.image", delivery.image)
    check_quantity("delivery.memory", delivery.memory)
    check_quantity("delivery.memory_limit", delivery.memory_limit)
    for name, _ in delivery.env:
        check_variable("delivery.env", name)


def load(reference: str) -> Any:
    """What `module:attribute` names, imported now."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
