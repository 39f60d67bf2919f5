"""`quarterdeck staleness`: explains the checker's state of an operator, and probes an operator.

It also prints what a checker needs that runs as a static pod.
`operators.staleness` decides; `staleness_text` formats.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import CommandFailed, Output, output_option, show

if TYPE_CHECKING:
    from quarterdeck.api.meta import Object
    from quarterdeck.delivery.declaration import Declaration

MAX_NAME_LENGTH = 253
"""The most characters of a name; the API server refuses to read a long request path."""
REFUSED = 3
"""The exit code of a probe that could not be made."""
NEEDED_TO_READ = "it takes the right to get clusteroperators.config.openshift.io"
NEEDED_TO_PROBE = (
    "a probe needs get, watch and patch of clusteroperators.config.openshift.io "
    "and patch of clusteroperators/status"
)


class CannotProbe(CommandFailed):
    """The operator cannot be probed in its present state."""

    exit_code = REFUSED


def _a_name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """The argument NAME, which goes into a request path; an invalid name ends the command."""
    if len(value) > MAX_NAME_LENGTH or not re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", value):
        raise CommandFailed(
            f"{value[:MAX_NAME_LENGTH]!r} cannot be the name of a ClusterOperator; "
            "quarterdeck operators shows all there are"
        )
    return value


@click.group(cls=CommandGroup)
def staleness() -> None:
    """Show whether a cluster operator still updates its conditions."""


@staleness.command()
@click.argument("name", callback=_a_name)
@click.option(
    "--interval",
    type=Duration(whole=True),
    help="The checker's interval.  [default: the interval that the checkers publish, or 10m]",
)
@click.option(
    "--keep-upgradeable-false/--no-keep-upgradeable-false",
    default=None,
    help="Whether the checker keeps a condition Upgradeable=False unchanged.  "
    "[default: the setting that the checkers publish]",
)
@cluster_access
@output_option
def explain(
    name: str,
    interval: timedelta | None,
    keep_upgradeable_false: bool | None,
    ask: Callable[..., Any],
    output: Output,
) -> None:
    """Show the state of the cluster operator NAME, the reason, and what the checker does next.

    The exit code is 0 if the operator is alive, or has no conditions to check, or cannot be
    checked; 1 if it is stale; 2 if its state cannot be read; 3 if it is challenged and has not
    answered yet.

    """
    from quarterdeck.cli.staleness_text import as_text
    from quarterdeck.operators.staleness import inspect
    from quarterdeck.operators.staleness.decide import CheckState
    from quarterdeck.operators.staleness.explain import EXIT_CODES

    with _told_in_one_line(name, NEEDED_TO_READ):
        found = ask(lambda client: inspect.explain(client, name, interval, keep_upgradeable_false))
    show(msgspec.to_builtins(found), output, lambda: as_text(found))
    sys.exit(EXIT_CODES[CheckState(found.state)])


@staleness.command()
@click.argument("name", callback=_a_name)
@click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long to wait for the operator's answer.",
)
@cluster_access
@output_option
def probe(name: str, timeout: timedelta, ask: Callable[..., Any], output: Output) -> None:
    """Challenge the cluster operator NAME now, and show how long its answer takes.

    The probe changes the messages of the operator's conditions, as the checker does, and nothing
    else. It restores the messages that the operator does not restore in time. The exit code is 0
    if the operator answered; 1 if it did not, or only in part; 2 if the probe failed; 3 if the
    operator cannot be probed: it is challenged already, is stale or cannot be checked.

    """
    from quarterdeck.cli.staleness_text import answers_as_data, answers_as_text
    from quarterdeck.operators.staleness.probe import probe as ask_operator

    seconds = timeout.total_seconds()
    with _told_in_one_line(name, NEEDED_TO_PROBE):
        outcome = ask(lambda client: ask_operator(client, name, seconds))
    answers = outcome.answers
    show(
        answers_as_data(name, answers),
        output,
        lambda: answers_as_text(name, answers, seconds, outcome.aftermath),
    )
    sys.exit(0 if all(one.seconds is not None for one in answers) else 1)


def _image(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """The option --image, which goes into a manifest; an invalid one ends the command."""
    from quarterdeck.payload.images import is_image

    if not is_image(value):
        raise click.BadParameter(f"{value!r}: not an image reference")
    return value


image_option = click.option(
    "--image",
    required=True,
    metavar="REF",
    callback=_image,
    help="The operators' image or a release image, best by its digest.",
)


@staleness.command("rights")
def print_rights() -> None:
    """Print the rights of the checker's static pods, to be applied once."""
    from quarterdeck.delivery.installation import static_pod_rights

    _print(static_pod_rights(_declared("staleness")))


@staleness.command("static-pod")
@image_option
def print_static_pod(image: str) -> None:
    """Print the checker's static pod, for the kubelet of each control plane node.

    Its directory /etc/quarterdeck/staleness has to be on the node, with its kubeconfig and its
    client certificate.
    """
    from quarterdeck.delivery.installation import static_pod_manifest

    _print([static_pod_manifest(_declared("staleness"), image)])


@staleness.command("approver")
@image_option
def print_approver(image: str) -> None:
    """Print the operator that approves the renewal of the static pods' certificates.

    Without it, approve each renewal by hand: kubectl certificate approve.
    """
    from quarterdeck.delivery.installation import operator_steps

    steps = operator_steps(_declared("certificates"), image)
    _print(obj for step in steps for obj in step.objects)


def _declared(name: str) -> "Declaration":
    from quarterdeck.delivery.registry import installed

    return installed().operators[name]


def _print(objects: "Iterable[Object]") -> None:
    from quarterdeck.delivery.yaml_text import text

    sys.stdout.write(text(objects))


@contextmanager
def _told_in_one_line(name: str, rights: str) -> Iterator[None]:
    """Turn errors of a request into one line with a remedy."""
    from quarterdeck.kube import Forbidden, NotFound
    from quarterdeck.operators.staleness.probe import Interrupted, ProbeFailed, ProbeRefused
    from quarterdeck.status.inspect import NO_DEFINITION

    try:
        yield
    except Interrupted as error:
        CommandFailed(str(error)).show()
        sys.exit(128 + error.number)
    except ProbeRefused as error:
        raise CannotProbe(str(error)) from None
    except ProbeFailed as error:
        raise CommandFailed(str(error)) from None
    except NotFound as error:
        if name not in error.message:
            raise CommandFailed(NO_DEFINITION) from None
        raise CommandFailed(f"{error.message}; quarterdeck operators shows all there are") from None
    except Forbidden as error:
        raise CommandFailed(f"{error.message}; {rights}") from None
