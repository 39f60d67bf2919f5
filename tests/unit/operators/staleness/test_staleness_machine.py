"""Whatever operators, checkers and clocks do, in whatever order: what always holds.

Operators die, answer all, answer in part, change their mind; three checkers look, wait with their
plan in hand, write, are refused, start again; the clock goes on and jumps; the storage is full for
a while and refuses every write; the checkers stand still, and lose their watches. The API server is
the model in `model.py`, which an integration test compares with a real one.
"""

from datetime import timedelta

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from tests.unit.operators.staleness.model import (
    CHECKER,
    OPERATOR,
    TYPES,
    ModelServer,
    Stale,
    condition,
    stamp,
)

from quarterdeck.api.meta import Object
from quarterdeck.api.times import parse_time
from quarterdeck.operators.staleness.decide import (
    Case,
    CheckState,
    Decision,
    Verdict,
    Write,
    decide,
)
from quarterdeck.operators.staleness.grace import PULSE_PERIOD, Grace
from quarterdeck.operators.staleness.sightings import Sightings
from quarterdeck.status.staleness_marks import (
    CHECKING_PREFIX,
    checking_message,
    is_checking,
    is_verdict,
    original,
    recorded_status,
)

P = 10
INTERVAL = timedelta(seconds=P)
GRACE = 8
CHECKERS = st.integers(0, 2)
SOME = st.sets(st.sampled_from(TYPES), min_size=1)
STATUSES = st.sampled_from(["True", "False", "Unknown"])
WORDS = st.sampled_from(["", "fine", "two\nlines", 'was "x", original message: y', " "])
MESSAGES = st.one_of(st.none(), WORDS, WORDS.map(lambda words: CHECKING_PREFIX + words))
"""An operator may have no message at all, so that its answer is to remove ours; or it may have read
its message back from the server, and keep our prefix as its own."""


def saying(one: Object, message: str | None) -> Object:
    """The condition with this message, or without any."""
    rest = {field: value for field, value in one.items() if field != "message"}
    return rest if message is None else rest | {"message": message}


def is_marked(one: Object) -> bool:
    return is_checking(text(one)) or is_verdict(one["status"], text(one))


def text(one: Object) -> str:
    message: str = one.get("message", "")
    return message


class Machine(RuleBasedStateMachine):
    """One operator, three checkers, one API server."""

    @initialize(
        types=SOME,
        statuses=STATUSES,
        message=MESSAGES,
        atomic=st.booleans(),
        keep=st.booleans(),
    )
    def begin(
        self, types: set[str], statuses: str, message: str | None, atomic: bool, keep: bool
    ) -> None:
        self.keep = keep
        kinds = [*sorted(types), "Disabled"]
        self.wanted = {kind: saying(condition(kind, statuses), message) for kind in kinds}
        self.server = ModelServer(list(self.wanted.values()), atomic=atomic)
        self.plans: list[tuple[Write, int] | None] = [None] * 3
        self.memories = [Sightings(keep_upgradeable_false=keep) for _ in range(3)]
        self.clock = 0.0  # the checkers' own, which never jumps
        self.writes: list[float] = []
        self.restarts: list[float] = []
        self.graces = [Grace(GRACE, 0, 0) for _ in range(3)]
        self.reached = 0.0  # the end of the last outage of the watches
        self.full_since: float | None = None
        self.last_full = (-1000.0, -1000.0)  # the last time in which the storage was full
        self.alive = True
        self.name = OPERATOR
        self.forward = 0.0  # how far the server's clock has gone forward, in all
        self.back = 0.0  # and back
        self.last_word = 0.0  # when the operator last wrote, on that scale
        self.everybody_looks()

    # --- time

    @rule(seconds=st.floats(0, 1.5 * P))
    def time_passes(self, seconds: float) -> None:
        while seconds > 0:
            step = min(seconds, PULSE_PERIOD)
            self.server.pass_time(step)
            self.forward += step
            self.clock += step
            seconds -= step
            for grace in self.graces:
                self.pulse(grace)

    def pulse(self, grace: Grace) -> None:
        """As in `pulse.py`; a challenge of this interval is always about to end in a verdict."""
        if not all(map(is_marked, self.can_be_marked())):
            grace.pulse(self.clock, self.clock, self.reached)
        elif self.full_since is None:
            grace.accepted(self.clock, self.clock, self.reached)
        else:
            grace.refused(self.clock)

    @rule(seconds=st.floats(0, 1.5 * P))
    def the_checkers_stand_still(self, seconds: float) -> None:
        self.server.pass_time(seconds)
        self.forward += seconds
        self.clock += seconds

    @rule()
    def the_watches_are_lost_for_a_moment(self) -> None:
        self.reached = self.clock

    @rule()
    def the_storage_is_full_or_has_space_again(self) -> None:
        if self.full_since is None:
            self.full_since = self.clock
        else:
            self.last_full = (self.full_since, self.clock)
            self.full_since = None

    @rule(seconds=st.integers(-P, 3 * P))
    def the_servers_clock_jumps(self, seconds: int) -> None:
        self.server.pass_time(seconds)
        self.forward += max(0, seconds)
        self.back += max(0, -seconds)

    @rule(seconds=st.floats(0, 4 * P), number=CHECKERS)
    def the_storage_is_full_for_a_while_and_a_checker_writes_at_once(
        self, seconds: float, number: int
    ) -> None:
        if self.full_since is None:
            self.the_storage_is_full_or_has_space_again()
        self.time_passes(seconds)
        self.the_storage_is_full_or_has_space_again()
        self.time_passes(0.1)
        self.a_checker_looks(number)
        self.a_checker_writes(number)

    # --- the operator

    @rule()
    def the_operator_dies_or_comes_back(self) -> None:
        self.alive = not self.alive

    @rule(name=st.sampled_from([OPERATOR, "its-other-name"]))
    def the_operator_writes_under_another_name(self, name: str) -> None:
        self.name = name

    @precondition(lambda self: self.alive and self.full_since is None)
    @rule(kinds=SOME)
    def the_operator_puts_some_back(self, kinds: set[str]) -> None:
        self.operator_says({kind: self.wanted[kind] for kind in kinds if kind in self.wanted})

    @precondition(lambda self: self.alive and self.full_since is None)
    @rule()
    def the_operator_puts_all_back(self) -> None:
        self.operator_says(self.wanted)
        for one in self.server.conditions:
            assert (one["status"], one.get("message")) == (
                self.wanted[one["type"]]["status"],
                self.wanted[one["type"]].get("message"),
            ), "a live operator is not Unknown for longer than one answer"

    @precondition(lambda self: self.alive and self.full_since is None)
    @rule(kinds=SOME, status=STATUSES, message=MESSAGES)
    def the_operator_has_news(self, kinds: set[str], status: str, message: str | None) -> None:
        news = {
            kind: saying(self.wanted[kind], message) | {"status": status}
            for kind in kinds
            if kind in self.wanted
        }
        self.wanted |= news
        self.operator_says(news)

    @precondition(lambda self: self.alive and self.full_since is None)
    @rule(kinds=SOME, reason=st.sampled_from(["This", "That"]))
    def the_operator_changes_a_reason_and_leaves_the_message(
        self, kinds: set[str], reason: str
    ) -> None:
        conditions = []
        for one in self.server.conditions:
            if one["type"] in kinds:
                self.wanted[one["type"]] = self.wanted[one["type"]] | {"reason": reason}
                one = one | {"reason": reason}
            conditions.append(one)
        self.operator_writes(conditions)

    def operator_says(self, said: dict[str, Object]) -> None:
        """Set these conditions; the time of transition moves with the status alone."""
        conditions = []
        for was in self.server.conditions:
            if (new := said.get(was["type"])) is not None:
                since = was["lastTransitionTime"]
                if was["status"] != new["status"]:
                    since = stamp(self.server.now)
                conditions.append(new | {"lastTransitionTime": since})
            else:
                conditions.append(was)
        self.operator_writes(conditions)

    def operator_writes(self, conditions: list[Object]) -> None:
        if self.server.update(self.name, conditions):
            self.last_word = self.forward
            self.everybody_looks()

    # --- the checkers

    def everybody_looks(self) -> None:
        """Each change reaches each checker, whether it decides something then or not."""
        for memory in self.memories:
            memory.record(self.server.get(), self.server.now, self.clock)

    def decide(self, number: int) -> Decision:
        obj, now = self.server.get(), self.server.now
        seen = self.memories[number].record(obj, now, self.clock)
        keep = self.keep
        return decide(
            Case(object=obj, now=now, interval=INTERVAL, keep_upgradeable_false=keep, seen=seen)
        )

    @rule(number=CHECKERS)
    def a_checker_looks(self, number: int) -> None:
        decision = self.decide(number)
        writes = isinstance(decision, Write)
        self.plans[number] = (decision, self.server.version) if writes else None  # type: ignore[assignment]

    @rule(number=CHECKERS)
    def a_checker_writes(self, number: int) -> None:
        if (plan := self.plans[number]) is None:
            return
        self.plans[number] = None
        decision, version = plan
        grace, verdict = self.graces[number], isinstance(decision, Verdict)
        challenged = self.memories[number].marked_since("it", self.clock)
        waits = grace.left(
            self.clock, self.clock, self.reached, verdict=verdict, challenged=challenged
        )
        if self.memories[number].wait("it", self.clock, INTERVAL):
            return
        if waits and grace.refused_for(self.clock) <= P:
            return
        if waits and self.full_since is None:
            grace.accepted(self.clock, self.clock)  # the write before the write
            return
        self.memories[number].note_write("it", self.clock)
        if self.full_since is not None:
            grace.refused(self.clock, again=True)
            return
        try:
            assert self.server.update(CHECKER, decision.conditions, version), "changes nothing"
        except Stale:
            self.memories[number].write_refused("it", self.clock)
            return
        self.everybody_looks()
        self.writes.append(self.clock)
        recent = [time for time in self.writes if self.clock - time < P]
        # Who starts again has forgotten what it saw, once.
        restarts = [time for time in self.restarts if self.clock - time < P]
        assert len(recent) <= 1 + len(restarts), "more than one write in an interval"
        if isinstance(decision, Verdict):
            silent = self.forward - self.last_word
            assert silent > 2 * P - self.back, "the verdict says more than two intervals"
            full, space = self.last_full
            if space - full > GRACE + 2 * PULSE_PERIOD:
                could = self.clock - space
                assert could >= GRACE - PULSE_PERIOD, "no operator could answer in time"

    @rule(number=CHECKERS)
    def a_checker_starts_again(self, number: int) -> None:
        self.plans[number] = None
        self.memories[number] = Sightings(keep_upgradeable_false=self.keep)
        self.graces[number] = Grace(GRACE, self.clock, self.clock)
        self.memories[number].record(self.server.get(), self.server.now, self.clock)
        self.restarts.append(self.clock)

    @rule(trouble=st.sampled_from(["none", "standstills", "lost watches"]))
    def a_dead_operator_is_found(self, trouble: str) -> None:
        """Within two intervals and one look, from when the clock is past all that is stamped.

        Also if the checkers stand still, or lose their watches, once in each grace period.
        """
        self.alive = False
        if self.full_since is not None:
            self.the_storage_is_full_or_has_space_again()
        obj = self.server.get()
        stamps = [obj["metadata"]["creationTimestamp"]]
        stamps += [entry["time"] for entry in obj["metadata"]["managedFields"]]
        stamps += [one["lastTransitionTime"] for one in self.watched()]
        newest = max(parse_time(text) or self.server.now for text in stamps)
        ahead = max(0.0, (newest - self.server.now).total_seconds())
        # Both waits end with a whole second, and then at the next look. A checker that has
        # forgotten what it saw, or a clock that jumped, costs one interval more.
        undisturbed = not self.restarts and not self.back and self.forward == self.clock
        limit = 2 * P + 5 if undisturbed else 3 * P + 4
        # A refused write counts as one, because its answer may be lost.
        limit += P + GRACE
        if trouble != "none":
            limit += 2 * GRACE
        for second in range(int(ahead) + limit):
            self.a_checker_looks(0)
            self.a_checker_writes(0)
            self.time_passes(1)
            if second % (GRACE - 1) or trouble == "none":
                continue
            if trouble == "standstills":
                self.the_checkers_stand_still(6)
            else:
                self.the_watches_are_lost_for_a_moment()
        if self.can_be_marked():
            assert self.decide(0).state is CheckState.STALE
        assert all(one["status"] == "Unknown" for one in self.can_be_marked())

    # --- what always holds

    def watched(self) -> list[Object]:
        return [one for one in self.server.conditions if one["type"] in TYPES]

    def can_be_marked(self) -> list[Object]:
        """The conditions that a checker watches: with the option, no Upgradeable=False."""
        kept = ("Upgradeable", "False") if self.keep else ()
        return [one for one in self.watched() if (one["type"], one["status"]) != kept]

    @invariant()
    def nothing_is_nested_and_everything_can_be_recovered(self) -> None:
        if not hasattr(self, "server"):
            return
        for one in self.watched():
            wanted, message = self.wanted[one["type"]], text(one)
            assert original(message) == original(text(wanted))
            if is_verdict(one["status"], message):
                assert message.count("Operator has not updated") == 1
                assert CHECKING_PREFIX not in message
                assert recorded_status(message) == wanted["status"]
            elif is_checking(message):
                assert message == checking_message(message)
                assert one["status"] == wanted["status"]
            else:
                assert (one["status"], message) == (wanted["status"], text(wanted))

    @invariant()
    def nothing_else_is_touched(self) -> None:
        if not hasattr(self, "server"):
            return
        for one in self.server.conditions:
            assert one["reason"] == self.wanted[one["type"]]["reason"]
        assert self.server.condition("Disabled") == self.wanted["Disabled"]


Machine.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    # To make a failure shorter takes minutes here, longer than a test may take.
    phases=[Phase.reuse, Phase.generate],
)
TestWhateverHappens = Machine.TestCase
