"""The controller of ClusterVersion `version`: observes, decides, writes, and directs the engine.

ClusterVersion, any ClusterOperator, the FeatureGate and the engine's progress wake it. It also
reads the releases directory periodically. A reconcile is short: the runner applies the payload in
its own task, and two others fetch release images and the update graph. The runner gets work only
after the status that announces the work is written.

How the operator replaces itself. A release's payload has the operator's own Deployment, at the
lowest run level, with that release's image and RELEASE_VERSION. In an update from 1.0.0 to 1.1.0:

1. The process of 1.0.0 accepts the update, writes `history[0] = 1.1.0 Partial`, and applies the
   payload of 1.1.0 from the same releases directory. (A process can apply the payload of another
   release.)
2. At run level 00 it applies its own Deployment and waits for its roll-out, as for any other. The
   new pod becomes ready without being the leader: its caches are synced.
3. The Deployment ends the old pod. On SIGTERM the process stops applying, writes nothing more and
   releases the Lease; if it is killed, its Lease expires.
4. The process of 1.1.0 becomes the leader. Its own version does not matter: `history[0]` is 1.1.0
   and Partial, so it applies that payload from the beginning. What is done already needs no write.

So RELEASE_VERSION only decides the first release of a cluster without history. If somebody changes
the Deployment by hand, the process of another release applies the release in the history, and
thereby restores the Deployment. All state is in API objects, so a crash at any point leads to
step 4.
"""

import asyncio

import msgspec

from quarterdeck.api.config_v1 import (
    CLUSTER_OPERATORS,
    CLUSTER_VERSIONS,
    FEATURE_GATES,
    ClusterVersion,
    ClusterVersionStatus,
    Release,
    Update,
)
from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    Result,
    Selection,
    Watch,
    to_singleton,
)
from quarterdeck.kube.errors import ApiError
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.history import completed, is_of, maybe_running
from quarterdeck.operators.cluster_version.log_level.controller import CONFIGS, THE_CONFIG
from quarterdeck.operators.cluster_version.new_version import KEY, THE_VERSION, create_version
from quarterdeck.operators.cluster_version.payloads import Loaded, Payloads
from quarterdeck.operators.cluster_version.retrieval.graphs import GraphRetriever
from quarterdeck.operators.cluster_version.retrieval.images import ImageRetriever
from quarterdeck.operators.cluster_version.selections import THE_GATES
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.skipped import SkippedManifests
from quarterdeck.operators.cluster_version.sync import Cluster
from quarterdeck.operators.cluster_version.version.announce import announcements
from quarterdeck.operators.cluster_version.version.blockers import blockers
from quarterdeck.operators.cluster_version.version.capabilities import not_asked_for
from quarterdeck.operators.cluster_version.version.conditions import (
    Facts,
    UpdatesShown,
    desired_status,
    pause_before_write,
    refuses_content,
    updates_shown,
    without_updates,
)
from quarterdeck.operators.cluster_version.version.decide import (
    ReleaseDecision,
    decide,
)
from quarterdeck.operators.cluster_version.version.faults import NONE, standing
from quarterdeck.operators.cluster_version.version.metrics import MetricsInput, VersionCollector
from quarterdeck.operators.cluster_version.version.runner import PayloadEngine, Runner
from quarterdeck.operators.cluster_version.version.scope import Scope, current_scope
from quarterdeck.operators.cluster_version.version.updates import (
    ImageNews,
    UpdateRefused,
    UpdateRequest,
    wanted_image,
)
from quarterdeck.operators.cluster_version.version.wanted import (
    graph_query,
    needed_digests,
    retrieved_text,
    shown_updates,
    update_service,
    wanted_images,
)
from quarterdeck.operators.cluster_version.version.work import (
    Work,
    mode_of,
    work_for,
)
from quarterdeck.payload.model import PayloadError
from quarterdeck.payload.releases import Offer
from quarterdeck.update_graph.updates import OfferedUpdates

log = get_logger("operators.cluster-version")

GATES_KEY = Key("", THE_GATES.name)
RECHECK_PERIOD_IF_REFUSED = 5.0
"""The most seconds after which the releases directory is read again while a release is refused,
which a change in the directory may end."""
MESSAGE_WRITE_PERIOD = 2.0
"""Seconds between two writes that change only reasons and messages."""


def add_cluster_version(manager: Manager, settings: Settings, payloads: Payloads) -> Controller:
    """Add the controller of ClusterVersion, and the engine that it directs; return the former."""
    version = VersionController(manager, settings, payloads)
    to_version = to_singleton(KEY)
    woken_by: list[Watch] = [
        Watch(version.versions),
        Watch(version.operators, to_version),
        Watch(version.gates, to_version),
    ]
    if not settings.is_hosted:
        # After a raise of the log level, the skipped manifests are logged at once.
        woken_by.append(Watch(manager.cache(CONFIGS, THE_CONFIG), to_version))
    controller = Controller("cluster-version", version.reconcile, woken_by, at_start=[KEY])
    runner = version.runner = Runner(lambda: controller.wake(KEY))

    async def run_engine() -> None:
        def announce(about: Object, reason: str, note: str) -> None:
            manager.events.event(about, "Warning", reason, note, action="Applying")

        async with Cluster(manager.client, announce=announce) as cluster:
            await runner.run(PayloadEngine(cluster))

    version.images.wake = version.graphs.wake = lambda: controller.wake(KEY)
    manager.add(controller)
    manager.add_task("payload engine", run_engine)
    manager.add_task("release images", version.images.run)
    manager.add_task("update graph", version.graphs.run)
    manager.registry.register(VersionCollector(version.metrics_input))
    return controller


class VersionController:
    """The reconcile function: observe, decide, write, direct the engine."""

    runner: Runner

    def __init__(self, manager: Manager, settings: Settings, payloads: Payloads) -> None:
        self._manager = manager
        self._settings = settings
        self.versions = manager.objects(CLUSTER_VERSIONS, THE_VERSION, writes=["create", "status"])
        self.operators = manager.cache(CLUSTER_OPERATORS, Selection(optional=True))
        self.gates = manager.cache(FEATURE_GATES, THE_GATES)
        self._payloads = payloads
        self.images = ImageRetriever(settings, payloads.forget)
        self.graphs = GraphRetriever(
            settings.upstream_interval,
            lambda: settings.registry_ca_file,
            settings.retrieval_timeout,
            manager.now,
        )
        self._skipped = SkippedManifests()
        self._standing = NONE
        self._written = float("-inf")
        self._refused_updates: tuple[UpdatesShown, str] | None = None
        """The updates with which the status was refused last, and why."""

    async def reconcile(self, _key: Key) -> Result:
        """Decide about the release, write the status, and give the engine its work."""
        version = self.versions.get(KEY)
        if version is None:
            return await create_version(self.versions, self._manager, self._settings)
        if version.metadata.deletion_timestamp:
            return DONE
        asked = await self._asked(version)
        first = self._settings.release_version
        requested = wanted_image(asked) if asked.history else asked.first_image
        self.images.want(wanted_images(asked, first), requested, needed_digests(asked))

        gates = self.gates.get(GATES_KEY)
        scope = current_scope(version, gates.spec if gates else None, self._settings.profile)

        async def load(offer: Offer) -> Loaded | UpdateRefused:
            found = await self._payloads.load(offer)
            judged = await self._scope_of(offer.release, found, asked, scope)
            return judged.usable(offer, found)

        decision = await decide(asked, load, first, self._manager.now())
        after = await self._scope_of(decision.release, decision.loaded, asked, scope)
        decision, work = self._with_progress(decision, after)
        wait = await self._report(version, self._facts(asked, decision, after, work))
        self.runner.want(work)
        well = decision.refused is None and decision.unusable is None
        period = self._settings.releases_interval.total_seconds()
        looks = [
            period if well else min(period, RECHECK_PERIOD_IF_REFUSED),
            wait,
            self._standing.next_look(self._manager.clock()),
        ]
        return Result(requeue_after=min(look for look in looks if look))

    def metrics_input(self) -> MetricsInput | None:
        """The input of the metrics; None while another replica is the leader."""
        if not self._manager.leads:
            return None
        operators = tuple(self.operators.list())
        found = self.versions.get(KEY)
        work, history = self.runner.work, found.status.history if found and found.status else ()
        is_current = work is not None and history and history[0].version == work.version
        progress = self.runner.progress if is_current else None
        return MetricsInput(version=found, operators=operators, progress=progress)

    async def _asked(self, version: ClusterVersion) -> UpdateRequest:
        gates = self.gates.get(GATES_KEY)
        # The management cluster decides about the updates of a hosted one.
        query = None if self._settings.is_hosted else graph_query(version)
        self.graphs.want(query)
        return UpdateRequest(
            update=self._wanted_update(version),
            history=version.status.history if version.status else (),
            releases=await self._payloads.releases(),
            blockers=blockers(
                self.operators.list(),
                version.spec.overrides,
                gates.spec.effective_feature_set if gates else "",
            ),
            service=update_service(query, self.graphs.news, version.status, self._manager.now()),
            first_image=self._settings.release_image,
            images=ImageNews(
                failures=dict(self.images.failures),
                resolved=dict(self.images.resolved),
                key=await asyncio.to_thread(self.images.key_identifier),
            ),
        )

    def _wanted_update(self, version: ClusterVersion) -> Update | None:
        """The requested update; of a hosted cluster, to the release of this operator.

        The management cluster names that release, and replaces this operator to change it.
        """
        if self._settings.is_hosted:
            return Update(version=self._settings.release_version)
        return version.spec.desired_update

    def _with_progress(
        self, decision: ReleaseDecision, scope: Scope
    ) -> tuple[ReleaseDecision, Work | None]:
        """The decision with the engine's progress, and the next work."""
        work = self._work(decision, scope)
        if work is None or not work.is_same_as(self.runner.work):
            self._standing = NONE
            return decision, work
        progress = self.runner.progress
        self._standing = standing(self._standing, progress, self._manager.clock())
        if progress is None or not progress.completed or progress.faults:
            return decision, work
        history = completed(decision.history, self._manager.now())
        if history == decision.history:
            return decision, work
        arrived = msgspec.structs.replace(decision, history=history)
        return arrived, self._work(arrived, scope)

    async def _scope_of(
        self,
        release: Release,
        found: Loaded | PayloadError | None,
        asked: UpdateRequest,
        scope: Scope,
    ) -> Scope:
        """The scope of a release; an update to it may enable capabilities."""
        history = asked.history
        if not isinstance(found, Loaded) or not history or is_of(history[0], release):
            return scope
        offers = (asked.releases.by_version(number) for number in maybe_running(history))
        running = [await self._payloads.load(offer) for offer in offers if offer is not None]
        payloads = [one.payload for one in running if isinstance(one, Loaded)]
        return scope.after_update(payloads, found.payload)

    def _work(self, decision: ReleaseDecision, scope: Scope) -> Work | None:
        loaded = decision.loaded
        if loaded is None:
            return None
        observed = scope.observed(loaded.payload)
        self._skipped.log_new(loaded.payload, loaded.hash, observed)
        return work_for(loaded.payload, loaded.hash, observed, decision.history)

    async def _report(self, version: ClusterVersion, facts: Facts) -> float | None:
        """Write the status now, or return the seconds after which to write it."""
        refused = self._refused_updates
        if refused is not None and refused[0] == updates_shown(facts):
            facts = without_updates(facts, refused[1])
        now, was = self._manager.clock(), version.status
        new = desired_status(facts, was, self._manager.now())
        if new == was:
            return None
        pause = pause_before_write(was, new, now - self._written, MESSAGE_WRITE_PERIOD)
        if pause > 0:
            return pause
        try:
            await self.versions.set_status(version, new)
        except ApiError as error:
            if not facts.shows_updates or not refuses_content(error):
                raise
            # The conditions matter more than the updates, and they say why there are none.
            log.info("status refused, so it is written without updates", why=str(error))
            self._refused_updates = (updates_shown(facts), error.message)
            return await self._report(version, facts)
        self._written = now
        self._announce(version, was, new)
        return None

    def _facts(
        self, asked: UpdateRequest, decision: ReleaseDecision, scope: Scope, work: Work | None
    ) -> Facts:
        now, version = self._manager.clock(), scope.version
        retrieved = retrieved_text(self.graphs.news.query, self.graphs.news, version.status)
        if asked.service is None:
            offers = asked.releases.reachable(maybe_running(decision.history))
            updates = OfferedUpdates(available=tuple(offer.release for offer in offers))
        else:
            updates = shown_updates(asked.service, version.status, retrieved)
        return Facts(
            generation=version.metadata.generation,
            release=decision.release,
            mode=mode_of(decision.history),
            history=decision.history,
            refused=decision.refused,
            way_back=msgspec.structs.replace(asked, history=decision.history).way_back,
            unusable=decision.unusable,
            version_hash=decision.loaded.hash if decision.loaded else "",
            # New work has no progress yet; the runner may still have that of the work before.
            progress=self.runner.progress_of(work),
            faults=self._standing.reportable(now),
            blockers=asked.blockers,
            capabilities=scope.capabilities,
            not_asked_for=not_asked_for(version.spec.capabilities, scope.capabilities),
            available_updates=updates.available,
            conditional_updates=updates.conditional,
            retrieved=retrieved,
        )

    def _announce(
        self,
        version: ClusterVersion,
        was: ClusterVersionStatus | None,
        new: ClusterVersionStatus,
    ) -> None:
        for said in announcements(was, new):
            log.info("cluster version", reason=said.reason, message=said.message)
            self._manager.events.event(
                version, said.type, said.reason, said.message, action=said.action
            )
