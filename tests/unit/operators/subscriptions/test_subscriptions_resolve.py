"""What a Subscription installs next; where operators may run; what an update would lose."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.unit.operators.subscriptions.catalogs import bundle, channel, entry, loaded, package

from quarterdeck.api.conditions import Condition
from quarterdeck.api.config_v1 import Proxy, ProxySpec, ProxyStatus
from quarterdeck.api.meta import Key, Object, ObjectMeta, OwnerReference
from quarterdeck.api.operators_v1 import OperatorGroup, OperatorGroupSpec
from quarterdeck.api.operators_v1alpha1 import (
    ClusterServiceVersion,
    ClusterServiceVersionSpec,
    ClusterServiceVersionStatus,
    ConfigEntry,
    InstallMode,
    InstallPlan,
    InstallPlanSpec,
    InstallPlanStatus,
    InstallStrategy,
    NamedDeployment,
    Subscription,
    SubscriptionSpec,
    SubscriptionStatus,
)
from quarterdeck.operators.subscriptions.catalog.model import Catalog
from quarterdeck.operators.subscriptions.config.faults import ConfigFailureReason, ConfigFault
from quarterdeck.operators.subscriptions.config.proxy import proxy_variables
from quarterdeck.operators.subscriptions.groups import GroupFault, Target, mode_fault, target_of
from quarterdeck.operators.subscriptions.install.phase import DeploymentResult, phase_of_deployments
from quarterdeck.operators.subscriptions.install.replacement import being_replaced, replaces
from quarterdeck.operators.subscriptions.install.reports import ConfigReport
from quarterdeck.operators.subscriptions.install.targets import accounts_of
from quarterdeck.operators.subscriptions.names import REPLACES, SUBSCRIPTION, label_value, plan_name
from quarterdeck.operators.subscriptions.resolve import (
    Decision,
    ObservedSubscription,
    ResolveFailure,
    decide,
)
from quarterdeck.operators.subscriptions.subscription_status import (
    SubscriptionProgress,
    desired_status,
    upgrade_warnings,
)
from quarterdeck.status import rollout

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CATALOG = loaded(
    package(),
    channel(entry("a"), entry("b", "a"), entry("c", "b")),
    bundle("a", "1.0.0"),
    bundle("b", "1.1.0"),
    bundle("c", "2.0.0"),
).catalog
HERE = Key("ns", "catalog")


def subscription(name: str = "s", *, of: str = "p", age: int = 0, **spec: Any) -> Subscription:
    meta = ObjectMeta(name=name, namespace="ns", uid=name, creation_timestamp=NOW - timedelta(age))
    return Subscription(metadata=meta, spec=SubscriptionSpec(package=of, **spec))


def csv(name: str, *, of: str | None = "s", replaces: str = "", phase: str = "Succeeded") -> Any:
    versions = {"a": "1.0.0", "b": "1.1.0", "c": "2.0.0"}
    annotations = {SUBSCRIPTION: of} if of else {}
    if replaces:
        annotations[REPLACES] = replaces
    return ClusterServiceVersion(
        metadata=ObjectMeta(name=name, namespace="ns", annotations=annotations),
        spec=ClusterServiceVersionSpec(
            display_name=name,
            version=versions.get(name),
            install=InstallStrategy(strategy="deployment"),
        ),
        status=ClusterServiceVersionStatus(phase=phase),
    )


def decided(
    wanted: Subscription | None = None,
    *csvs: ClusterServiceVersion,
    catalogs: dict[Key, Catalog | None] | None = None,
    siblings: list[Subscription] | None = None,
) -> tuple[str, str, str]:
    """What is installed, what comes next, and the reason of a failure."""
    found = decide(
        ObservedSubscription(
            subscription=wanted or subscription(),
            siblings=siblings or [],
            csvs=csvs,
            catalogs={HERE: CATALOG} if catalogs is None else catalogs,
        )
    )
    return (
        found.current.metadata.name if found.current else "",
        found.step.bundle.name if found.step else "",
        found.failure.reason if found.failure else "",
    )


def test_first_the_head_of_the_channel_or_the_starting_version() -> None:
    assert decided() == ("", "c", "")
    assert decided(subscription(starting_csv="a")) == ("", "a", "")
    assert decided(subscription(starting_csv="x")) == ("", "", "StartingCSVNotFound")


@pytest.mark.parametrize(
    ("installed", "missing"),
    [
        pytest.param({}, "other >=1.0.0 <2.0.0, third 1.0.0", id="neither"),
        pytest.param({"other": "1.5.0", "third": "1.0.0"}, "", id="both"),
        pytest.param({"other": "2.0.0", "third": "1.0.0"}, "other >=1.0.0 <2.0.0", id="too new"),
        pytest.param({"other": "1.5.0", "third": "x"}, "third 1.0.0", id="a version that is none"),
    ],
)
@pytest.mark.parametrize("is_update", [False, True], ids=["install", "update"])
def test_required_packages_are_installed_before(
    installed: dict[str, str], missing: str, is_update: bool
) -> None:
    needs = [("other", ">=1.0.0 <2.0.0"), ("third", "1.0.0")]
    new = bundle("b", "1.1.0")
    new["properties"] += [
        {"type": "olm.package.required", "value": {"packageName": name, "versionRange": versions}}
        for name, versions in needs
    ]
    chain = channel(entry("a"), entry("b", "a"))
    catalog = loaded(package(), chain, bundle("a", "1.0.0"), new).catalog
    seen = ObservedSubscription(
        subscription=subscription(),
        siblings=[],
        csvs=[csv("a")] if is_update else [],
        catalogs={HERE: catalog},
        version_of=lambda name: installed.get(name, ""),
    )
    decision = decide(seen)
    assert (decision.current is not None) == is_update
    assert (decision.step is not None) == (not missing)
    if missing:
        assert decision.failure is not None
        assert decision.failure.reason == "RequiredPackageMissing"
        assert f"b requires {missing}, which is not installed" in decision.failure.message


def test_one_hop_at_a_time_and_only_from_a_version_that_works() -> None:
    assert decided(None, csv("a")) == ("a", "b", "")
    assert decided(None, csv("a", phase="Failed")) == ("a", "", "")
    assert decided(None, csv("a"), csv("b", replaces="a", phase="Installing")) == ("b", "", "")
    assert decided(None, csv("c")) == ("c", "", "")


def test_an_update_waits_while_the_installed_version_does_not_work() -> None:
    seen = ObservedSubscription(
        subscription=subscription(),
        siblings=[],
        csvs=[csv("a", phase="Installing")],
        catalogs={HERE: CATALOG},
    )
    found = decide(seen)
    assert (found.step, found.waits) == (None, True)


@pytest.mark.parametrize(
    ("wanted", "catalogs", "reason"),
    [
        (subscription(install_plan_approval="Maybe"), None, "InvalidSpec"),
        (subscription(channel="x"), None, "ChannelNotFound"),
        (subscription(of="q"), None, "PackageNotFound"),
        (subscription(), {}, "CatalogSourceMissing"),
        (subscription(), {HERE: None}, "CatalogSourceUnusable"),
        (subscription(), {Key("x", "1"): CATALOG, Key("x", "2"): CATALOG}, "AmbiguousSource"),
        (subscription(), {Key("x", "1"): CATALOG, HERE: CATALOG}, ""),
    ],
)
def test_failures(wanted: Subscription, catalogs: Any, reason: str) -> None:
    assert decided(wanted, catalogs=catalogs)[2] == reason


def test_two_subscriptions_to_one_package() -> None:
    """The older one goes on."""
    older, newer = subscription("older", age=1), subscription("newer")
    assert decided(older, siblings=[newer])[2] == ""
    assert decided(newer, siblings=[older]) == ("", "", "DuplicateSubscription")


def test_a_version_of_another_subscription_is_left_alone_and_an_orphan_adopted() -> None:
    others = subscription("other", of="q")
    seen = ObservedSubscription(
        subscription=subscription(),
        siblings=[others],
        csvs=[csv("b", of="other")],
        catalogs={HERE: CATALOG},
    )
    found = decide(seen)
    assert found.failure is not None
    assert found.failure.reason == "ClusterServiceVersionOwned"
    orphan = decide(
        ObservedSubscription(
            subscription=subscription(),
            siblings=[],
            csvs=[csv("b", of="gone")],
            catalogs={HERE: CATALOG},
        )
    )
    assert orphan.adopt is not None
    assert orphan.adopt.metadata.name == "b"
    by_hand = decided(None, csv("b", of=None))
    assert by_hand == ("", "", "ClusterServiceVersionOwned")


def test_a_bundle_that_cannot_be_installed_here() -> None:
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}
    broken = loaded(package(), channel(entry("a")), bundle("a", "1.0.0", secret)).catalog
    assert decided(catalogs={HERE: broken})[2] == "NotInstallable"


def group(name: str = "g", **spec: Any) -> OperatorGroup:
    return OperatorGroup(metadata=ObjectMeta(name=name), spec=OperatorGroupSpec(**spec))


LABELS = {"ns": {}, "one": {"team": "x"}, "two": {"team": "x"}, "three": {}}


@pytest.mark.parametrize(
    ("groups", "namespaces", "modes"),
    [
        ([], ("ns",), ("OwnNamespace",)),
        ([group()], (), ("AllNamespaces",)),
        ([group(target_namespaces=("ns",))], ("ns",), ("OwnNamespace",)),
        ([group(target_namespaces=("one",))], ("one",), ("SingleNamespace",)),
        ([group(target_namespaces=("two", "one"))], ("one", "two"), ("MultiNamespace",)),
        (
            [group(target_namespaces=("ns", "one"))],
            ("ns", "one"),
            ("MultiNamespace", "OwnNamespace"),
        ),
        ([group(selector={"matchLabels": {"team": "x"}})], ("one", "two"), ("MultiNamespace",)),
        ([group(selector={})], (), ("AllNamespaces",)),
        ([group(selector={"matchLabels": {}})], (), ("AllNamespaces",)),
    ],
)
def test_targets(
    groups: list[OperatorGroup], namespaces: tuple[str, ...], modes: tuple[str, ...]
) -> None:
    target = target_of("ns", groups, LABELS)
    assert isinstance(target, Target)
    assert (target.namespaces, target.modes) == (namespaces, modes)


def test_without_its_group_nothing_is_installed_with_more_rights() -> None:
    fault = target_of("ns", [], LABELS, ["installer"])
    assert isinstance(fault, GroupFault)
    assert (fault.reason, "as the ServiceAccount installer" in fault.message) == (
        "NoOperatorGroup",
        True,
    )
    explicit = target_of("ns", [group()], LABELS, ["installer"])
    assert isinstance(explicit, Target)
    assert explicit.account == ""


def test_an_account_that_is_no_name() -> None:
    fault = target_of("ns", [group(service_account_name="a\r\nImpersonate-Group: x")], LABELS)
    assert isinstance(fault, GroupFault)
    assert fault.reason == "InvalidOperatorGroup"
    assert "spec.serviceAccountName" in fault.message


def plan(csv: str, replaces: str = "", *, of: str = "s", **status: Any) -> InstallPlan:
    owner = OwnerReference(
        api_version="operators.coreos.com/v1alpha1",
        kind="Subscription",
        name=of,
        uid=of,
        controller=True,
    )
    return InstallPlan(
        metadata=ObjectMeta(name=f"plan-{csv}", namespace="ns", owner_references=[owner]),
        spec=InstallPlanSpec(
            approval="Manual",
            approved=False,
            cluster_service_version_names=(csv,) if csv else (),
            replaces=replaces or None,
        ),
        status=InstallPlanStatus(**status),
    )


def test_the_accounts_as_which_something_was_installed() -> None:
    """A plan counts until the version that it has created was handled."""
    refused = plan("a", phase="Failed", installed_as="x")
    done = plan("a", phase="Complete", installed_as="x")
    handled = csv("a")
    fresh = msgspec.structs.replace(handled, status=ClusterServiceVersionStatus())
    recorded = msgspec.structs.replace(
        handled, status=ClusterServiceVersionStatus(phase="Failed", installed_as="y")
    )
    assert accounts_of([], [refused]) == {"x"}
    assert accounts_of([fresh], [done]) == {"x"}
    assert accounts_of([handled], [done]) == set()
    assert accounts_of([recorded], [done]) == {"y"}
    assert accounts_of([], [done]) == set()


def test_a_replacement_needs_a_plan_of_the_same_subscription() -> None:
    """An annotation alone says nothing: the replaced version is deleted in the end."""
    older, newer = csv("a"), csv("b", replaces="a")
    assert replaces(newer, older, [plan("b", "a")])
    assert not replaces(newer, older, [])
    assert not replaces(newer, older, [plan("b", "a", of="other"), plan("b"), plan("c", "a")])
    assert not replaces(csv("b", of="other", replaces="a"), older, [plan("b", "a")])
    unowned = csv("a", of=None), csv("b", of=None, replaces="a")
    assert not replaces(unowned[1], unowned[0], [plan("b", "a", of="")])
    assert not replaces(csv("b"), older, [plan("b", "a")])
    told = being_replaced(newer)
    begun = msgspec.structs.replace(
        older, status=ClusterServiceVersionStatus(phase=told.phase, message=told.message)
    )
    assert replaces(newer, begun, [])
    assert not replaces(csv("c", replaces="a"), begun, [])


def test_several_groups_and_modes_that_are_not_supported() -> None:
    fault = target_of("ns", [group("a"), group("b")], LABELS)
    assert isinstance(fault, GroupFault)
    assert fault.reason == "TooManyOperatorGroups"
    nobody = target_of("ns", [group(selector={"matchLabels": {"team": "none"}})], LABELS)
    assert isinstance(nobody, GroupFault)
    assert nobody.reason == "NoTargetNamespaces"
    broken = [{"key": "a", "operator": "Maybe"}]
    invalid = target_of("ns", [group(selector={"matchExpressions": broken})], LABELS)
    assert isinstance(invalid, GroupFault)
    assert invalid.reason == "InvalidOperatorGroup"
    target = Target(namespace="ns", namespaces=())
    own = InstallMode(type="OwnNamespace", supported=True)
    found = mode_fault(target, [own, InstallMode(type="AllNamespaces", supported=False)])
    assert found is not None
    assert found.reason == "UnsupportedOperatorGroup"
    assert mode_fault(Target(namespace="ns", namespaces=("ns",)), [own]) is None


def named(name: str, labels: Object, *containers: str) -> NamedDeployment:
    pod = {"containers": [{"name": one} for one in containers or ("main",)]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return NamedDeployment(name=name, spec={"selector": {}, "template": template})


def test_what_an_update_would_lose() -> None:
    selected = ConfigEntry(selector={"matchLabels": {"app": "x"}})
    now, same = [named("d", {"app": "x"})], [named("d", {"app": "x", "new": "label"})]
    assert upgrade_warnings([selected], now, same) == []
    assert upgrade_warnings([selected], now, [named("d", {"app": "y"})]) == [
        "config[0]: No operator pods found matching selector."
    ]
    sidecar = ConfigEntry(containers=("main",))
    (lost,) = upgrade_warnings([sidecar], now, [named("d", {"app": "x"}, "other")])
    assert "container named main" in lost
    two = [named("d", {"app": "x"}), named("e", {"app": "x"})]
    assert upgrade_warnings([selected], two, [named("d", {"app": "x"}), named("e", {})]) == [
        "config[0]: no longer applies to Deployment e"
    ]
    mount = ConfigEntry(volume_mounts=({"name": "v", "mountPath": "/v"},))
    with_volume = named("d", {})
    with_volume.spec["template"]["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    assert upgrade_warnings([mount], [with_volume], [named("d", {})]) == [
        "config[0].volumeMounts[0]: no volume named v in Deployment d"
    ]


ENTRY = ConfigEntry(selector={"matchLabels": {"app": "x"}})
FAULT = ConfigFault(
    entry=0, reason=ConfigFailureReason.ENV, field="env[0]", deployment="d", cause="no"
)
OLD = SubscriptionStatus(
    observed_generation=3,
    conditions=(
        Condition(
            type="ConfigFailure",
            status="True",
            reason="EnvFailure",
            message="config[0].env[0]: no (Deployment d)",
            last_transition_time=NOW,
        ),
    ),
)


def judged(generation: int | None, *, faults: tuple[ConfigFault, ...] = ()) -> SubscriptionStatus:
    """The status of generation 4, with a report about another generation perhaps."""
    wanted = subscription(config=(ENTRY,))
    meta = msgspec.structs.replace(wanted.metadata, generation=4)
    wanted = msgspec.structs.replace(wanted, metadata=meta, status=OLD)
    report = ConfigReport(generation=generation, faults=faults) if generation else None
    progress = SubscriptionProgress(decision=Decision(current=csv("a")), plan=None, report=report)
    return desired_status(wanted, progress, NOW)


def test_a_config_that_nobody_has_judged_is_not_observed() -> None:
    for unjudged in (judged(None), judged(3), judged(3, faults=(FAULT,))):
        assert unjudged.observed_generation == 3
        assert [one.type for one in unjudged.conditions] == ["ConfigFailure"]
    assert judged(4).observed_generation == 4
    assert judged(4).conditions == ()
    assert [one.reason for one in judged(4, faults=(FAULT,)).conditions] == ["EnvFailure"]


def following(phase: str, plan: InstallPlan | None = None, **changes: Any) -> SubscriptionStatus:
    """The status of a Subscription whose config does not fit the next version."""
    label = {"app": "x"}
    old, new = named("d", label), named("d", {"app": "y"})
    catalog = loaded(
        package(),
        channel(entry("a"), entry("b", "a")),
        bundle("a", "1.0.0"),
        bundle("b", "1.1.0", install=strategy(new)),
    ).catalog
    current = csv("a", phase=phase)
    install = msgspec.convert(strategy(old), InstallStrategy)
    spec = msgspec.structs.replace(current.spec, install=install)
    current = msgspec.structs.replace(current, spec=spec)
    wanted = subscription(config=(ENTRY,), **changes)
    seen = ObservedSubscription(
        subscription=wanted, siblings=[], csvs=[current], catalogs={HERE: catalog}
    )
    progress = SubscriptionProgress(decision=decide(seen), plan=plan, report=None)
    return desired_status(wanted, progress, NOW)


def strategy(deployment: NamedDeployment) -> Object:
    made = {"name": deployment.name, "spec": deployment.spec}
    return {"strategy": "deployment", "spec": {"deployments": [made]}}


@pytest.mark.parametrize("phase", ["Succeeded", "Installing", "InstallReady"])
def test_a_warning_stays_while_the_plan_can_be_approved(phase: str) -> None:
    """Also while the update waits for the installed version, such as after a change of config."""
    waiting = plan("b", "a", phase="RequiresApproval")
    found = following(phase, waiting)
    assert "UpgradeConfigWarning" in [one.type for one in found.conditions]
    assert found.state == "UpgradePending"
    assert following(phase).state == "UpgradeAvailable"


def test_only_the_head_is_the_latest_known() -> None:
    def state(decision: Decision) -> str | None:
        progress = SubscriptionProgress(decision=decision, plan=None, report=None)
        return desired_status(subscription(), progress, NOW).state

    failure = ResolveFailure(reason="ChannelNotFound", message="x")
    assert state(Decision(current=csv("c"), at_head=True)) == "AtLatestKnown"
    assert state(Decision(current=csv("c"), at_head=True, failure=failure)) is None
    assert state(Decision(current=csv("c"))) is None


def test_a_plan_without_a_version_is_no_error() -> None:
    progress = SubscriptionProgress(decision=Decision(current=csv("a")), plan=plan(""), report=None)
    assert desired_status(subscription(), progress, NOW).current_csv == "a"


def test_the_proxy_in_use_is_that_of_the_status() -> None:
    proxy = Proxy(
        spec=ProxySpec(http_proxy="http://wanted", no_proxy="x"),
        status=ProxyStatus(http_proxy="http://in-use"),
    )
    assert proxy_variables(proxy) == {"HTTP_PROXY": "http://in-use"}
    unwritten = msgspec.structs.replace(proxy, status=ProxyStatus())
    assert proxy_variables(unwritten) == {"HTTP_PROXY": "http://wanted", "NO_PROXY": "x"}
    assert proxy_variables(None) == {}


def result(name: str, outcome: rollout.Outcome | None, **more: Any) -> DeploymentResult:
    return DeploymentResult(name=name, is_applied=outcome is not None, outcome=outcome, **more)


@pytest.mark.parametrize(
    ("results", "phase"),
    [
        ([], "Succeeded"),
        ([result("a", rollout.DONE)], "Succeeded"),
        ([result("a", rollout.DONE), result("b", rollout.Waiting("r", "m"))], "Installing"),
        ([result("a", rollout.Failed("r", "m")), result("b", rollout.Waiting("r", "m"))], "Failed"),
        ([result("a", rollout.DONE, refused=("no",))], "Failed"),
    ],
)
def test_phases(results: list[DeploymentResult], phase: str) -> None:
    assert phase_of_deployments(results).phase == phase


def test_names() -> None:
    assert label_value("short") == "short"
    long = label_value("x" * 100)
    assert len(long) <= 63
    assert long != label_value("x" * 101)


def test_a_plan_of_another_step_has_another_name() -> None:
    """So it replaces the plan of before: also after a change of the source."""

    def name(digest: str = "d", source: Key = HERE, replaces: str = "b") -> str:
        return plan_name("s", "u", "c", digest, source=source, replaces=replaces)

    names = [name(), name("e"), name(source=Key("ns", "other")), name(replaces="a")]
    assert len(set(names)) == len(names)
    assert name() == name()
