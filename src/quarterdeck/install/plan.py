"""Decides what to install, and what speaks against it. Pure.

- With a release, the cluster version operator is installed, and applies what the capabilities
  enable. An operator is switched off if somebody else owns a definition of one of its kinds:
  another operator serves that kind.
- Where another cluster version operator is in charge, as on OpenShift, only operators are installed
  that do not exist there, directly.
- A cluster that has a release already keeps it: `quarterdeck update` changes it.
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, OptionalFile, StaticPodDelivery
from quarterdeck.delivery.installation import (
    Step,
    all_in_one_steps,
    applier_steps,
    console_steps,
    operator_steps,
)
from quarterdeck.delivery.manifests import custom_resource
from quarterdeck.install.facts import ClusterFacts
from quarterdeck.install.preflight import (
    InstallOptions,
    PreflightFinding,
    error,
    info,
    left_alone,
    operator_names,
    release_findings,
    server_findings,
    warning,
    way_findings,
)
from quarterdeck.registry.reference import has_registry, parse_reference

FIELD_MANAGER = "quarterdeck-install"
RELEASE_NAME = "quarterdeck-release"


class AppliedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step, and the field manager that applies it."""

    step: Step
    manager: str
    shared: bool = False
    """Whether administrators bring these objects too, in place of ours."""


class InstallationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is installed, in order."""

    way: Literal["release", "direct", "all-in-one"]
    findings: tuple[PreflightFinding, ...]
    steps: tuple[AppliedStep, ...] = ()
    later: tuple[AppliedStep, ...] = ()
    """Steps for the time when the operators run."""
    capabilities: tuple[str, ...] | None = None
    """The only capabilities of a new ClusterVersion; None for all."""
    image: str = ""
    operators: tuple[str, ...] = ()
    """The names of the operators that the cluster gets, directly or by the release."""

    @property
    def objects(self) -> list[Object]:
        """All objects that are applied."""
        steps = (*self.steps, *self.later)
        return [obj for applied in steps for obj in applied.step.objects]

    @property
    def refused(self) -> bool:
        """Whether something speaks against it."""
        return any(one.level == "error" for one in self.findings)


def plan(
    facts: ClusterFacts, options: InstallOptions, operators: Sequence[Declaration], version: str
) -> InstallationPlan:
    """What to install of these operators; `version` is that of this program."""
    way: Literal["release", "direct", "all-in-one"] = "release"
    if facts.is_openshift:
        way = "direct"
    elif options.all_in_one:
        way = "all-in-one"
    found = [*server_findings(facts), *operator_names(options, operators)]
    found += way_findings(facts, options, way)
    kept, off = _served_here(facts, operators, options.operators, way)
    found += off
    found += left_alone(facts)
    image = wanted_image(options, version)
    if not image and not facts.release:
        found.append(error("no image: name the release image with --image, or a --registry"))
    if image and not has_registry(image):
        found.append(
            warning(
                f"the image {image} names no registry, so the nodes ask their default one; name it "
                f"as registry.example.test/{image}"
            )
        )
    if facts.release:
        found += release_findings(facts, image)
    if any(one.level == "error" for one in found):
        return InstallationPlan(way=way, findings=tuple(found), image=image)
    # All that runs beside a release is of that release.
    image = facts.release_image or image
    capabilities = _capabilities(operators, kept) if way == "release" else None
    if capabilities is not None and facts.cluster_version is not None:
        found.append(warning("there is a ClusterVersion, whose spec.capabilities stay as they are"))
    steps, more = _steps(facts, options, kept, image, way)
    return InstallationPlan(
        way=way,
        findings=(*found, *more),
        steps=tuple(steps),
        capabilities=capabilities,
        image=image,
        operators=tuple(one.name for one in kept),
    )


def wanted_image(options: InstallOptions, version: str) -> str:
    """The release image: as given, in the registry that is given if it names none itself."""
    image, registry = options.image, options.registry.rstrip("/")
    if not registry:
        return image
    if not image:
        return f"{registry}/{RELEASE_NAME}:{version.replace('+', '_')}"
    return image if has_registry(image) else f"{registry}/{image}"


def _mirrors(options: InstallOptions) -> dict[str, bytes]:
    """The file that makes the registry a mirror of that of the image; releases leave it alone."""
    registry = options.registry.rstrip("/")
    if not registry or not has_registry(options.image):
        return {}
    source = parse_reference(options.image).registry
    is_same = registry.partition("/")[0] == source
    return {} if is_same else {"mirrors": f"{source}={registry}\n".encode()}


def _steps(
    facts: ClusterFacts,
    options: InstallOptions,
    kept: Sequence[Declaration],
    image: str,
    way: str,
) -> tuple[list[AppliedStep], list[PreflightFinding]]:
    steps: list[AppliedStep] = []
    found: list[PreflightFinding] = []
    direct = [one for one in kept if way == "direct" or not one.is_in_payload]
    if way == "release":
        (applier,) = (one for one in kept if one.applies_payload)
        made = applier_steps(applier, image)
        # A release that is there may be newer than this program, so what it has stays.
        kept_steps = [
            msgspec.structs.replace(one, create_only=bool(facts.release)) for one in made[:-1]
        ]
        steps += [AppliedStep(step=one, manager=applier.field_manager) for one in kept_steps]
        steps += [
            AppliedStep(step=one, manager=FIELD_MANAGER, shared=True)
            for one in _trust(applier, options)
        ]
        if not facts.release:
            steps.append(AppliedStep(step=made[-1], manager=applier.field_manager))
    elif way == "all-in-one":
        made = all_in_one_steps(kept, image)
        steps += [AppliedStep(step=one, manager=FIELD_MANAGER) for one in made]
        direct = []
    for declared in direct:
        made = operator_steps(declared, image)
        steps += [AppliedStep(step=one, manager=FIELD_MANAGER) for one in made]
    if options.console:
        steps += [AppliedStep(step=one, manager=FIELD_MANAGER) for one in console_steps(image)]
    if not steps:
        found.append(info("nothing is left to install"))
    return [_without_foreign(one, facts) for one in steps], found


def _without_foreign(applied: AppliedStep, facts: ClusterFacts) -> AppliedStep:
    """The step without definitions that somebody else installed."""
    kept = tuple(
        obj
        for obj in applied.step.objects
        if obj["kind"] != "CustomResourceDefinition" or obj["metadata"]["name"] not in facts.foreign
    )
    step = msgspec.structs.replace(applied.step, objects=kept)
    return msgspec.structs.replace(applied, step=step)


def trust_files(applier: Declaration) -> list[OptionalFile]:
    """The files that an administrator may bring for the operator that applies releases."""
    in_payload = getattr(applier.delivery, "in_payload", None)
    return [one for files in getattr(in_payload, "optional_files", ()) for one in files.files]


def _trust(applier: Declaration, options: InstallOptions) -> list[Step]:
    """The Secret and ConfigMaps whose files the cluster version operator finds in its pod."""
    contents = {**options.trust, **_mirrors(options)}
    objects = []
    for one in trust_files(applier):
        if one.path not in contents:
            continue
        content = contents[one.path]
        metadata = {"name": one.name, "namespace": applier.namespace}
        if one.source == "secret":
            data = {one.key: base64.b64encode(content).decode()}
            kind = {"kind": "Secret", "type": "kubernetes.io/dockerconfigjson"}
        else:
            data, kind = {one.key: content.decode()}, {"kind": "ConfigMap"}
        objects.append({"apiVersion": "v1", **kind, "metadata": metadata, "data": data})
    return [Step(title="files for registries", objects=tuple(objects))] if objects else []


def _served_here(
    facts: ClusterFacts,
    operators: Sequence[Declaration],
    asked: Sequence[str],
    way: str,
) -> tuple[list[Declaration], list[PreflightFinding]]:
    """The operators to install, and why others are switched off."""
    kept: list[Declaration] = []
    found: list[PreflightFinding] = []
    for declared in operators:
        if declared.applies_payload:
            if way != "direct":
                kept.append(declared)
            continue
        if asked and declared.name not in asked:
            continue
        instead = declared.as_deployment()
        owned = [name for name in _kinds(declared) if name in facts.foreign]
        if instead is None:
            found.append(info(f"{declared.title} runs only by hand: quarterdeck run"))
        elif owned:
            owners = facts.foreign[owned[0]]
            found.append(
                warning(
                    f"{declared.title} is switched off: {', '.join(owned)} belongs to another "
                    f"({owners}), which serves it here"
                )
            )
        elif declared.cluster_operator and declared.cluster_operator in facts.reporting:
            found.append(
                warning(
                    f"{declared.title} is switched off: another operator reports in the "
                    f"ClusterOperator {declared.cluster_operator}"
                )
            )
        elif declared.name in asked or _is_usual(declared):
            kept.append(instead)
    if way == "direct":
        found.append(
            warning(
                "OpenShift found: the cluster version operator and its release are switched off; "
                "only operators that do not exist here are installed"
            )
        )
    return kept, found


def _is_usual(declared: Declaration) -> bool:
    """Whether an operator is installed without being asked for."""
    return declared.is_in_payload or isinstance(declared.delivery, StaticPodDelivery)


def _capabilities(
    operators: Sequence[Declaration], kept: Iterable[Declaration]
) -> tuple[str, ...] | None:
    """The capabilities of the operators that are kept; None if none is left out."""
    names = {one.name for one in kept}
    of_payload = [one for one in operators if one.is_in_payload and one.capability]
    if all(one.name in names for one in of_payload):
        return None
    return tuple(sorted({one.capability for one in of_payload if one.name in names}))


def _kinds(declared: Declaration) -> list[str]:
    """The names of the definitions of an operator's own kinds."""
    return [custom_resource(reference).crd_name for reference in declared.kinds]
