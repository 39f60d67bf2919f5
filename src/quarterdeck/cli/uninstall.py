"""`quarterdeck uninstall`: take Quarterdeck out of a cluster."""

import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import log as logs
from quarterdeck.cli.access import can_be_continued, cluster_access
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.output import CommandFailed, errors_in_one_line
from quarterdeck.terminal import visible

if TYPE_CHECKING:
    from quarterdeck.install.look import Installed
    from quarterdeck.kube import Client

MAX_LISTED = 10


class NotRemoved(CommandFailed):
    """Something is still there."""

    exit_code = 1


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask, also if objects of users are deleted.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option(
    "--timeout",
    type=Duration(),
    default="5m",
    show_default=True,
    help="How long each step may take.",
)
@cluster_access
def uninstall(yes: bool, dry_run: bool, timeout: timedelta, ask: Callable[..., Any]) -> None:
    """Take Quarterdeck out of the cluster of the current kubeconfig.

    The operators clean up after their objects first; then they are removed, with their rights,
    CRDs and namespaces. What others installed stays.

    The exit code is 0 if nothing is left, 1 if something is, 2 if the cluster cannot be asked or
    the command is stopped.
    """
    from quarterdeck.install.look import UninstallError

    logs.configure(verbosity=0)
    with errors_in_one_line(UninstallError):
        found = ask(_look)
        if found.is_nothing:
            click.echo("nothing of Quarterdeck is installed")
            return
        _show(found, every=dry_run)
        if dry_run:
            click.echo("nothing was changed (--dry-run)")
            return
        try:
            ask(lambda client: _check_rights(client, found))
            if not yes:
                _confirm(found)
            with can_be_continued("what is removed is gone: run this again to continue"):
                ask(lambda client: _remove(client, timeout))
        except UninstallError as error:
            raise NotRemoved(str(error)) from error
        left = ask(_look)
    for one in left.touched:
        click.echo(f"left as it is, because others use it too: {visible(str(one))}")
    for one in left.kept:
        inside = [str(each) for each in left.others if each.namespace == one.name]
        more = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
        click.echo(f"left, because others use it: {visible(f'{one} ({inside[0]}{more})')}")
    for one in found.helm:
        name, _, namespace = one.partition(" in the namespace ")
        command = f"helm uninstall {name} --namespace {namespace}"
        click.echo(f"Helm still lists its release; to end that: {visible(command)}")
    if not left.is_nothing:
        raise NotRemoved("something has come back; run this again")
    click.echo("Quarterdeck is removed")


async def _look(client: "Client") -> "Installed":
    from quarterdeck.delivery.registry import installed
    from quarterdeck.install.look import look

    return await look(client, list(installed().operators.values()))


async def _check_rights(client: "Client", found: "Installed") -> None:
    from quarterdeck.install.uninstall import check_rights

    await check_rights(client, found)


async def _remove(client: "Client", timeout: timedelta) -> None:
    from quarterdeck.cli.steps import Steps
    from quarterdeck.delivery.registry import installed
    from quarterdeck.install.uninstall import remove

    with Steps() as step:
        operators = list(installed().operators.values())
        await remove(client, operators, timeout.total_seconds(), step)


def _show(found: "Installed", *, every: bool) -> None:
    click.echo(
        f"to be removed: {len(found.definitions)} CRDs, {len(found.namespaces)} namespaces, "
        f"{len(found.objects)} other objects"
    )
    if every:
        _list(found)
    for one in found.kept:
        click.echo(f"kept, because others use it: {visible(str(one))}")
    if found.users:
        counts = Counter(one.resource.kind for one in found.users)
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        click.echo(f"with objects of users: {told}")
        for one in found.users if every else found.users[:MAX_LISTED]:
            click.echo(f"  {visible(str(one))}")
        if len(found.users) > MAX_LISTED and not every:
            click.echo(f"  and {len(found.users) - MAX_LISTED} more")


def _list(found: "Installed") -> None:
    """Every object that goes, except those that go with their owner."""
    for name in sorted(found.definitions):
        click.echo(f"  CustomResourceDefinition {visible(name)}")
    for one in (*found.namespaces, *found.objects):
        click.echo(f"  {visible(str(one))}")


def _confirm(found: "Installed") -> None:
    question = "Delete these objects of users too" if found.users else "Remove Quarterdeck"
    if not sys.stdin.isatty():
        raise NotRemoved("nothing was changed: give --yes to remove it without a question")
    if not click.confirm(f"{question}?"):
        raise NotRemoved("nothing was changed")
