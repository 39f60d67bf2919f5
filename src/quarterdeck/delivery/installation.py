"""The objects that put Quarterdeck into a cluster, in the order in which they are applied. Pure.

There are three ways. With a release, only the cluster version operator is installed, and it applies
the rest from its release image. Operators can be installed directly, each from its own manifests,
where another cluster version operator runs. All operators can share one Deployment.

`quarterdeck install` applies these objects; `charts` writes them as files.
"""

import copy
from collections.abc import Iterable

import msgspec

import quarterdeck
from quarterdeck.api.custom_resource import SELF_MANAGED
from quarterdeck.api.definition import definition
from quarterdeck.api.meta import Object
from quarterdeck.delivery.console import console_objects
from quarterdeck.delivery.declaration import Declaration, Deployed, PayloadPart
from quarterdeck.delivery.manifests import (
    account_objects,
    custom_resource,
    deployment,
    disruption_budgets,
    part_objects,
    workload,
)
from quarterdeck.delivery.payload import payload_deployment
from quarterdeck.status.definitions import OWNER

DEFAULT_IMAGE = f"quarterdeck:{quarterdeck.__version__}"
ALL_IN_ONE = "quarterdeck"
"""The namespace, account and Deployment of all operators in one process."""
RELEASE_IMAGE = "RELEASE_IMAGE"
PLATFORM = "--default-platform=None"
_TEMPLATES = {"{{.ReleaseImage}}": "", "{{.ClusterProfile}}": SELF_MANAGED[0]}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Objects that are applied together, before those of the next step."""

    title: str
    objects: tuple[Object, ...]
    create_only: bool = False
    """Whether an object that exists is left as it is."""


def applier_steps(applier: Declaration, image: str = DEFAULT_IMAGE) -> list[Step]:
    """The operator that applies releases, its rights and its kinds."""
    return [
        _step("rights", account_objects(applier)),
        _step("CRDs", _definitions(applier.kinds)),
        _step(applier.title, [_applier(applier, image), *disruption_budgets(applier)]),
    ]


def operator_steps(declared: Declaration, image: str = DEFAULT_IMAGE) -> list[Step]:
    """One operator by itself, from its own manifests."""
    found = workload(declared)
    made = [copy.deepcopy(found), *disruption_budgets(declared)] if found else []
    for obj in made:
        if obj["kind"] == "Deployment":
            _set_image(obj, image)
    return [
        _step(f"rights of {_start(declared)}", account_objects(declared)),
        *_kinds_and_objects(declared),
        _step(declared.title, made),
    ]


def static_pod_rights(declared: Declaration) -> list[Object]:
    """The roles of an operator's static pod, and their bindings to its user."""
    return list(map(_owned, account_objects(declared)))


def static_pod_manifest(declared: Declaration, image: str) -> Object:
    """The file for a kubelet's directory of static pods; ValueError if the operator has none."""
    found = workload(declared)
    if found is None or found["kind"] != "Pod":
        raise ValueError(f"the operator {declared.name} runs as no static pod")
    pod = copy.deepcopy(found)
    (container,) = pod["spec"]["containers"]
    container["image"] = image
    return pod


def console_steps(image: str = DEFAULT_IMAGE) -> list[Step]:
    """The web console, with one replica."""
    objects = copy.deepcopy(console_objects())
    for obj in objects:
        if obj["kind"] == "Deployment":
            obj["spec"]["replicas"] = 1
            _set_image(obj, image)
    return [_step("The web console", objects)]


def all_in_one_steps(operators: Iterable[Declaration], image: str = DEFAULT_IMAGE) -> list[Step]:
    """All these operators in one Deployment, for a small cluster; none applies releases."""
    alone = [_in_one(declared) for declared in operators]
    metadata = {"name": ALL_IN_ONE, "namespace": ALL_IN_ONE}
    home = Declaration(
        name=ALL_IN_ONE,
        title="All operators in one",
        setup="quarterdeck.delivery.installation:all_in_one_steps",
        namespace=ALL_IN_ONE,
        account=ALL_IN_ONE,
        delivery=Deployed(
            image=image,
            memory="192Mi",
            memory_limit="1Gi",
            priority_class="system-cluster-critical",
        ),
    )
    assert isinstance(home.delivery, Deployed)  # noqa: S101 - just made
    made = deployment(home, home.delivery)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["args"] = [
        "run",
        *(f"--operator={declared.name}" for declared in alone),
        *container["args"][2:],
    ]
    if any(declared.applies_payload for declared in alone):
        # The release in its own image would bring a Deployment for each operator.
        container["args"] += ["--own-release=", PLATFORM]
    # Without POD_NAMESPACE each operator works in the namespace that it declares.
    skipped = {"POD_NAMESPACE", "RELEASE_VERSION"}
    env = dict(
        pair for one in alone if isinstance(one.delivery, Deployed) for pair in one.delivery.env
    )
    container["env"] = [
        *(each for each in container["env"] if each["name"] not in skipped),
        *({"name": name, "value": image if name == "ROUTER_IMAGE" else env[name]} for name in env),
    ]
    accounts: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ALL_IN_ONE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *(_for_account(obj) for one in alone for obj in account_objects(one)),
    ]
    unique = {(one["kind"], str(one["metadata"])): one for one in accounts if one["kind"]}
    return [
        _step("rights of all operators", unique.values()),
        *(step for one in alone for step in _kinds_and_objects(one)),
        _step(home.title, [made, *disruption_budgets(home)]),
    ]


def _in_one(declared: Declaration) -> Declaration:
    """The operator as it is in a process with others: it sees all namespaces."""
    alone = msgspec.structs.replace(declared, only_own_namespace=False, cluster_admin=False)
    if not declared.applies_payload or not isinstance(declared.delivery, Deployed):
        return alone
    # Its rights follow from these arguments too.
    delivery = msgspec.structs.replace(declared.delivery, args=(PLATFORM,))
    return msgspec.structs.replace(alone, delivery=delivery)


def _for_account(obj: Object) -> Object:
    """The object with the account of all operators in place of its own; none for that itself."""
    if obj["kind"] == "ServiceAccount":
        return obj | {"kind": ""}
    if "subjects" not in obj:
        return obj
    subject = {"kind": "ServiceAccount", "name": ALL_IN_ONE, "namespace": ALL_IN_ONE}
    return obj | {"subjects": [subject]}


def _kinds_and_objects(declared: Declaration) -> list[Step]:
    references = [*declared.kinds, *(kind for part in declared.parts for kind in part.kinds)]
    steps = [_step(f"CRDs of {_start(declared)}", _definitions(references))]
    steps += [_part(declared, part) for part in declared.parts if part.objects]
    return [step for step in steps if step.objects]


def _part(declared: Declaration, part: PayloadPart) -> Step:
    made = _step(f"objects of {_start(declared)}", part_objects(part))
    return msgspec.structs.replace(made, create_only=not part.kept)


def _definitions(references: Iterable[str]) -> list[Object]:
    return [definition(custom_resource(reference)) for reference in references]


def _applier(declared: Declaration, image: str) -> Object:
    """The Deployment of a payload, for a release whose image is known and whose version is not."""
    made = payload_deployment(declared)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["args"] = [
        _filled(arg) for arg in container["args"] if not arg.startswith("--release-image=")
    ]
    container["env"] = [
        *(one for one in container["env"] if one["name"] != "RELEASE_VERSION"),
        {"name": RELEASE_IMAGE, "value": image},
    ]
    _set_image(made, image)
    return made


def _filled(arg: str) -> str:
    for template, value in _TEMPLATES.items():
        arg = arg.replace(template, value)
    return arg


def _set_image(deployed: Object, image: str) -> None:
    (container,) = deployed["spec"]["template"]["spec"]["containers"]
    container["image"] = image


def _start(declared: Declaration) -> str:
    """The title in the middle of a sentence."""
    return declared.title[:1].lower() + declared.title[1:]


def _step(title: str, objects: Iterable[Object]) -> Step:
    return Step(title=title, objects=tuple(map(_owned, objects)))


def _owned(obj: Object) -> Object:
    annotations = {**(obj["metadata"].get("annotations") or {}), OWNER: "quarterdeck"}
    return obj | {"metadata": obj["metadata"] | {"annotations": annotations}}
