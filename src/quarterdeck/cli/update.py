"""`quarterdeck update`: what the cluster can be updated to; start an update, and follow it.

`operators.cluster_version.version.inspect` makes the requests; `update_text` formats them.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck import log as logs
from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.output import CommandFailed, Output, errors_in_one_line, output_option, show
from quarterdeck.cli.steps import Steps

if TYPE_CHECKING:
    from quarterdeck.kube import Client
    from quarterdeck.operators.cluster_version.version.update_view import UpdateView


@click.command()
@click.argument("version", required=False)
@click.option(
    "--image", metavar="REF", help="Update to the release with this image, by tag or digest."
)
@click.option(
    "--accept-risk",
    "accepted",
    multiple=True,
    metavar="NAME",
    help="Accept this risk of an update that is not recommended; you can give it several times.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Update even if minor updates are blocked or the release cannot be verified.",
)
@click.option("--cancel", is_flag=True, help="Withdraw a request that was not accepted yet.")
@click.option("--watch", "-w", is_flag=True, help="Follow the update until it is complete.")
@click.option(
    "--timeout",
    type=Duration(),
    default="60s",
    show_default=True,
    help="How long to wait until the request is accepted or refused.",
)
@cluster_access
@output_option
def update(
    version: str | None,
    image: str | None,
    accepted: tuple[str, ...],
    force: bool,
    cancel: bool,
    watch: bool,
    timeout: timedelta,
    ask: Callable[..., Any],
    output: Output,
) -> None:
    """Show the cluster's version and the updates there are, or update to VERSION.

    The exit code is 0 if the cluster is, or is being updated, as requested; 1 if a request is
    refused or its release not retrieved yet, or an update fails; 2 if the cluster cannot be asked.
    """
    from quarterdeck.operators.cluster_version.version.inspect import (
        UpdateError,
        current_update,
        request_update,
        withdraw_request,
    )

    starts = bool(version or image)
    if cancel and (starts or watch):
        raise click.UsageError("--cancel: give no release and no --watch with it")
    if (force or accepted) and not starts:
        raise click.UsageError("--force and --accept-risk need a VERSION or an --image")
    # Errors only: the cache logs each of its lists at the default verbosity.
    logs.configure(verbosity=0)

    def look(client: "Client") -> Any:
        if cancel:
            return withdraw_request(client, timeout)
        if not starts:
            return current_update(client)
        return request_update(
            client,
            version=version or "",
            image=image or "",
            force=force,
            accepted_risks=frozenset(accepted),
            timeout=timeout,
        )

    with errors_in_one_line(UpdateError):
        with Steps() as step:
            if starts or cancel:
                step("waiting for the cluster version operator to accept the request")
            view = ask(look)
        if watch and not view.refused:
            view = _follow(ask, output)
    _show(view, output, watched=watch, starts=starts or cancel)
    sys.exit(1 if view.refused or view.retrieving or view.state == "failing" else 0)


def _show(view: "UpdateView", output: Output, *, watched: bool, starts: bool) -> None:
    from quarterdeck.cli.update_text import as_brief, as_sentence, as_text

    as_lines = as_sentence if watched else as_brief if starts else as_text
    show(msgspec.to_builtins(view), output, lambda: as_lines(view))


def _follow(ask: Callable[..., Any], output: Output) -> "UpdateView":
    """Show the progress on standard error until the update is complete, and return the end."""
    from quarterdeck.cli.update_text import FOLLOW_AGAIN, ProgressBar

    bar = ProgressBar(sys.stderr)

    async def until_complete(client: "Client") -> "UpdateView":
        from quarterdeck.operators.cluster_version.version.inspect import follow

        async with aclosing(follow(client)) as views:
            async for view in views:
                if output == "table":
                    bar.show(view)
                settled = view.is_observed and not view.retrieving
                if settled and (view.state == "complete" or view.refused):
                    return view
        raise AssertionError("follow ends only with an error")

    try:
        view: UpdateView = ask(until_complete)
    except (KeyboardInterrupt, asyncio.CancelledError):
        bar.end()
        raise CommandFailed(f"stopped watching; the update goes on: {FOLLOW_AGAIN}") from None
    bar.end()
    return view
