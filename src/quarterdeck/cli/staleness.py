"""`quarterdeck staleness`: what the checker thinks of an operator, and how it answers.

What is said is decided in `operators.staleness`; how it looks, in `staleness_text`.
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.durations import Duration, parse_duration
from quarterdeck.cli.output import CommandFailed, Output, output_option, show

if TYPE_CHECKING:
    from quarterdeck.kube import Client
    from quarterdeck.operators.staleness.evidence import Proof
    from quarterdeck.operators.staleness.explain import Explanation, Patience
    from quarterdeck.operators.staleness.probe import Answer

CHECKER_NAMESPACE = "kube-system"
REFUSED = 3
"""The exit code of a probe that could not be made."""


class CannotProbe(CommandFailed):
    """The operator is in no state to be asked."""

    exit_code = REFUSED


@click.group()
def staleness() -> None:
    """Say whether a cluster operator still updates its conditions."""


@staleness.command()
@click.argument("name")
@click.option(
    "--interval",
    type=Duration(whole=True),
    help="The checker's interval.  [default: that of the checker in kube-system, else 10m]",
)
@click.option(
    "--keep-upgradeable-false", is_flag=True, help="As the checker was told; see `run --help`."
)
@cluster_access
@output_option
def explain(
    name: str,
    interval: timedelta | None,
    keep_upgradeable_false: bool,
    ask: Callable[..., Any],
    output: Output,
) -> None:
    """Say what the checker thinks of NAME, why, and when it acts next.

    Exits with 0 when the operator is alive or has nothing to check, 1 when it is stale, 3 when it
    stands challenged and has not answered yet, 2 when that could not be found out.
    """
    from quarterdeck.cli.staleness_text import as_text
    from quarterdeck.operators.staleness.decide import State
    from quarterdeck.operators.staleness.explain import EXIT_CODES

    async def question(client: "Client") -> "Explanation":
        return await look(client, name, interval, keep_upgradeable_false)

    found = ask(question)
    show(msgspec.to_builtins(found), output, lambda: as_text(found))
    sys.exit(EXIT_CODES[State(found.state)])


@staleness.command()
@click.argument("name")
@click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long to wait for the answer.",
)
@cluster_access
@output_option
def probe(name: str, timeout: timedelta, ask: Callable[..., Any], output: Output) -> None:
    """Ask NAME for a sign of life now, and report the time to its answer.

    Changes the messages of its conditions, as the checker does, and nothing else; what the
    operator does not put back in time is put back. Exits with 0 when it answered, 1 when it did
    not or only in part, 3 when it could not be asked because it stands challenged or is stale.
    """
    from quarterdeck.cli.staleness_text import answers_as_data, answers_as_text

    async def question(client: "Client") -> "list[Answer]":
        return await ask_operator(client, name, timeout.total_seconds())

    answers = ask(question)
    seconds = timeout.total_seconds()
    show(answers_as_data(name, answers), output, lambda: answers_as_text(name, answers, seconds))
    sys.exit(0 if all(one.seconds is not None for one in answers) else 1)


async def look(
    client: "Client", name: str, interval: timedelta | None, keep_upgradeable_false: bool
) -> "Explanation":
    """Everything about one operator, read from the cluster."""
    from quarterdeck.kube import NotFound
    from quarterdeck.operators.staleness.decide import Case, decide
    from quarterdeck.operators.staleness.evidence import has_managed_fields
    from quarterdeck.operators.staleness.explain import explanation
    from quarterdeck.operators.staleness.sightings import Sightings
    from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

    patience = await _patience(client, interval, keep_upgradeable_false)
    try:
        obj = await client.get(PLAIN_CLUSTER_OPERATORS, name)
    except NotFound as error:
        raise CommandFailed(
            f"{error.message}; all there are: kubectl get clusteroperators"
        ) from None
    lease = await _lease(client, obj)
    now = client.server_time() or datetime.now(UTC)
    case = Case(
        object=obj,
        now=now,
        interval=patience.interval,
        keep_upgradeable_false=patience.keep_upgradeable_false,
        lease=lease,
        seen=Sightings().look(obj, now),
    )
    dated = has_managed_fields(obj)
    return explanation(name, decide(case), now, patience, lease, dated=dated)


async def ask_operator(client: "Client", name: str, timeout: float) -> "list[Answer]":
    """The operator's answers; an error that says what is in the way."""
    from quarterdeck.kube import Forbidden, NotFound
    from quarterdeck.operators.staleness.probe import Refused, probe

    try:
        return await probe(client, name, timeout)
    except Refused as error:
        raise CannotProbe(str(error)) from None
    except NotFound as error:
        raise CommandFailed(
            f"{error.message}; all there are: kubectl get clusteroperators"
        ) from None
    except Forbidden as error:
        raise CommandFailed(
            f"{error.message}; a probe needs get and watch of clusteroperators.config.openshift.io "
            "and patch of clusteroperators/status"
        ) from None


async def _patience(
    client: "Client", interval: timedelta | None, keep_upgradeable_false: bool
) -> "Patience":
    """The settings as given, else as a checker in the cluster has them, else the defaults."""
    from quarterdeck.operators.staleness.explain import (
        INTERVAL_FLAG,
        KEEP_FLAG,
        Patience,
        running_with,
    )
    from quarterdeck.operators.staleness.settings import Settings

    if interval is not None:
        return Patience(
            interval=interval, keep_upgradeable_false=keep_upgradeable_false, source="as given"
        )
    found = running_with(await _checkers(client))
    if found is None:
        return Patience(
            interval=Settings().interval,
            keep_upgradeable_false=keep_upgradeable_false,
            source=f"the default; no checker was found in {CHECKER_NAMESPACE}",
        )
    where, arguments = found
    texts = [arg.removeprefix(INTERVAL_FLAG) for arg in arguments if arg.startswith(INTERVAL_FLAG)]
    return Patience(
        interval=(parse_duration(texts[-1]) if texts else None) or Settings().interval,
        keep_upgradeable_false=keep_upgradeable_false or KEEP_FLAG in arguments,
        source=f"of {where}",
    )


async def _checkers(client: "Client") -> list[dict[str, Any]]:
    from quarterdeck.api.meta import PODS
    from quarterdeck.kube import Forbidden

    try:
        found = await client.list(
            PODS, CHECKER_NAMESPACE, label_selector="app=quarterdeck-staleness"
        )
    except Forbidden:
        return []
    return found.items


async def _lease(client: "Client", obj: dict[str, Any]) -> "Proof | None":
    from quarterdeck.api.meta import LEASES
    from quarterdeck.kube import Forbidden, NotFound
    from quarterdeck.operators.staleness.leases import named_leases, newest, renewal

    proofs = []
    for key in named_leases(obj):
        try:
            proofs.append(renewal(await client.get(LEASES, key.name, key.namespace)))
        except (NotFound, Forbidden):
            continue
    return newest(proofs)
