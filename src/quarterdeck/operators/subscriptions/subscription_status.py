"""The status of a Subscription. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.operators_v1alpha1 import (
    UPGRADE_WARNING,
    ConfigEntry,
    InstallPlan,
    InstallPlanReference,
    NamedDeployment,
    Subscription,
    SubscriptionStatus,
)
from quarterdeck.controller.faults import readable
from quarterdeck.operators.subscriptions.config.faults import (
    config_faults,
    first_reason,
    message_of,
    selector_faults,
)
from quarterdeck.operators.subscriptions.config.merge import applies, merged
from quarterdeck.operators.subscriptions.install.desired import named_deployments
from quarterdeck.operators.subscriptions.install.reports import ConfigReport
from quarterdeck.operators.subscriptions.resolve import Decision
from quarterdeck.status import set_condition
from quarterdeck.status.conditions import remove_conditions

CONFIG_FAILURE = "ConfigFailure"
SELECTOR_FAILURE = "PodConfigSelectorFailure"
OWN_TYPES = (
    "ResolutionFailed",
    "CatalogSourcesUnhealthy",
    "InstallPlanPending",
    "InstallPlanFailed",
    UPGRADE_WARNING,
)
CONFIG_TYPES = (CONFIG_FAILURE, SELECTOR_FAILURE)

Wanted = tuple[str, str, str]
"""Type, reason and message of a condition that is True."""


class SubscriptionProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a Subscription after a reconcile."""

    decision: Decision
    plan: InstallPlan | None
    """The InstallPlan that waits, runs, or ran last."""
    report: ConfigReport | None
    """What the installer says about the config; None if it has not looked yet."""


def desired_status(
    subscription: Subscription, progress: SubscriptionProgress, now: datetime
) -> SubscriptionStatus:
    """The status of the Subscription."""
    decision, plan = progress.decision, progress.plan
    current = decision.current
    pending = plan if plan is not None and plan.status.phase != "Complete" else None
    installed = current.metadata.name if current else None
    conditions = subscription.status.conditions
    wanted = list(_conditions(subscription, progress))
    is_judged = _is_judged(subscription, progress)
    judged = [*OWN_TYPES, *(CONFIG_TYPES if is_judged else ())]
    if decision.failure is not None and pending is not None:
        judged.remove(UPGRADE_WARNING)  # It is not known, and the plan can still be approved.
    names = {one[0] for one in wanted}
    conditions = remove_conditions(conditions, [type_ for type_ in judged if type_ not in names])
    for type_, reason, message in wanted:
        made = Condition(
            type=type_,
            status="True",
            reason=reason,
            message=readable(message),
            last_transition_time=now,
        )
        conditions = set_condition(conditions, made, now)
    return SubscriptionStatus(
        current_csv=(
            next(iter(pending.spec.cluster_service_version_names), installed)
            if pending is not None
            else installed
        ),
        installed_csv=installed,
        state=_state(decision, pending),
        install_plan_ref=_reference(plan) or subscription.status.install_plan_ref,
        observed_generation=(
            subscription.metadata.generation
            if is_judged
            else subscription.status.observed_generation
        ),
        conditions=conditions,
    )


def _is_judged(subscription: Subscription, progress: SubscriptionProgress) -> bool:
    """Whether the installer has looked at this config, with the installed version."""
    if progress.decision.current is None:
        return True
    report = progress.report
    return report is not None and report.generation == subscription.metadata.generation


def _state(decision: Decision, pending: InstallPlan | None) -> str | None:
    if pending is not None:
        return "UpgradeFailed" if pending.status.phase == "Failed" else "UpgradePending"
    if decision.step is not None or decision.waits:
        return "UpgradeAvailable"
    if decision.current is None or decision.failure is not None or not decision.at_head:
        return None
    return "AtLatestKnown"


def _reference(plan: InstallPlan | None) -> InstallPlanReference | None:
    if plan is None:
        return None
    return InstallPlanReference(
        api_version=plan.api_version,
        kind=plan.kind,
        name=plan.metadata.name,
        namespace=plan.metadata.namespace,
        uid=plan.metadata.uid,
    )


def _conditions(subscription: Subscription, progress: SubscriptionProgress) -> Iterator[Wanted]:
    decision, plan, report = progress.decision, progress.plan, progress.report
    if (failure := decision.failure) is not None:
        yield "ResolutionFailed", failure.reason, failure.message
        if failure.unhealthy:
            yield "CatalogSourcesUnhealthy", failure.reason, failure.message
    if plan is not None:
        match plan.status.phase:
            case "Complete":
                pass
            case "Failed":
                yield "InstallPlanFailed", "InstallFailed", plan.status.message or ""
            case _ if not plan.spec.approved:
                message = (
                    f"InstallPlan {plan.metadata.name} waits for approval; to approve it: "
                    f"quarterdeck subscription approve {subscription.metadata.name} "
                    f"--namespace {subscription.metadata.namespace}"
                )
                yield "InstallPlanPending", "RequiresApproval", message
            case _:
                yield "InstallPlanPending", "Installing", f"InstallPlan {plan.metadata.name} runs"
    if decision.following is not None and decision.current is not None:
        following = named_deployments(decision.following.content.typed)
        now = named_deployments(decision.current)
        if warnings := upgrade_warnings(subscription.spec.config, now, following):
            name = decision.following.bundle.name
            message = f"with {name}: " + "; ".join(warnings)
            yield UPGRADE_WARNING, "ConfigNoLongerApplies", message
    if report is None or not _is_judged(subscription, progress):
        return
    if report.faults:
        yield CONFIG_FAILURE, first_reason(report.faults), message_of(report.faults)
    if report.selector_faults:
        reason = report.selector_faults[0].reason
        yield SELECTOR_FAILURE, reason, message_of(report.selector_faults)


def upgrade_warnings(
    config: Sequence[ConfigEntry],
    now: Sequence[NamedDeployment],
    following: Sequence[NamedDeployment],
) -> list[str]:
    """What applies now and would no longer apply with the next version."""
    known = {str(fault) for fault in (*selector_faults(config, now), *_faults(config, now))}
    later = [*selector_faults(config, following), *_faults(config, following)]
    lost = [str(fault) for fault in later if str(fault) not in known]
    for index, entry in enumerate(config):
        before = {one.name for one in now if applies(entry, one, index)}
        after = {one.name for one in following if applies(entry, one, index)}
        if after and (gone := sorted(before - after)):
            lost.append(f"config[{index}]: no longer applies to Deployment {', '.join(gone)}")
    return lost


def _faults(config: Sequence[ConfigEntry], deployments: Sequence[NamedDeployment]) -> list[object]:
    return [fault for one in deployments for fault in config_faults(merged(one, config), config)]
