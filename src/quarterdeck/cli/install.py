"""`quarterdeck install`: put Quarterdeck into a cluster.

`quarterdeck.install` decides and makes the requests; this module parses, calls and shows.
"""

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import quarterdeck
from quarterdeck import log as logs
from quarterdeck.cli.access import can_be_continued, cluster_access
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.output import CommandFailed, errors_in_one_line
from quarterdeck.terminal import visible

if TYPE_CHECKING:
    from quarterdeck.install.plan import InstallationPlan
    from quarterdeck.install.preflight import InstallOptions
    from quarterdeck.kube import Client

READABLE = click.Path(path_type=Path, exists=True, dir_okay=False)
MAX_FILE = 1 << 20
CONTINUE = (
    "what is applied stays: run this again to continue, or remove it with: quarterdeck uninstall"
)
_COLOURS = {"error": "red", "warning": "yellow", "info": None}


class Refused(CommandFailed):
    """The preflight found something that speaks against the installation."""

    exit_code = 1


@click.command()
@click.option("--image", default="", metavar="REF", help="The release image, best by its digest.")
@click.option(
    "--registry",
    default="",
    metavar="HOST[/PATH]",
    help="The registry of the release image if --image names none; otherwise a mirror of it.",
)
@click.option(
    "--operators",
    metavar="NAME,...",
    help="Install only these operators.  [default: all that the cluster can have]",
)
@click.option("--pull-secret", type=READABLE, help="Credentials of registries, for releases.")
@click.option("--registry-ca", type=READABLE, help="Certificates that are trusted for registries.")
@click.option(
    "--verification-key", type=READABLE, help="The public key that releases are signed with."
)
@click.option("--console", is_flag=True, help="Also run the web console.")
@click.option("--monitoring", is_flag=True, help="Also apply the objects for Prometheus.")
@click.option(
    "--all-in-one", is_flag=True, help="Run all operators in one process, without a release."
)
@click.option("--dry-run", is_flag=True, help="Only check, and say what would be applied.")
@click.option("-o", "--output", type=click.Choice(["yaml"]), help="Only print the objects.")
@click.option("--no-wait", is_flag=True, help="Return when the operators are started.")
@click.option(
    "--timeout",
    type=Duration(),
    default="15m",
    show_default=True,
    help="How long to wait until the cluster has its release.",
)
@cluster_access
def install(
    image: str,
    registry: str,
    operators: str | None,
    pull_secret: Path | None,
    registry_ca: Path | None,
    verification_key: Path | None,
    console: bool,
    monitoring: bool,
    all_in_one: bool,
    dry_run: bool,
    output: str | None,
    no_wait: bool,
    timeout: timedelta,
    ask: Callable[..., Any],
) -> None:
    """Put Quarterdeck into the cluster of the current kubeconfig.

    First it checks what the cluster is and what you may do, and says what is switched off. Then it
    applies the cluster version operator, its rights and its CRDs, and waits until the release is
    applied. You can repeat it.

    The exit code is 0 if everything is there, 1 if the preflight refuses or the release is not
    there in time, 2 if the cluster cannot be asked or the command is stopped.
    """
    from quarterdeck.install.carry_out import InstallError
    from quarterdeck.install.preflight import InstallOptions

    files = {
        "pull-secret.json": ("--pull-secret", pull_secret),
        "ca-bundle.crt": ("--registry-ca", registry_ca),
        "release.pub": ("--verification-key", verification_key),
    }
    options = InstallOptions(
        image=image,
        registry=registry,
        operators=_names(operators),
        all_in_one=all_in_one,
        console=console,
        monitoring=monitoring,
        trust={name: _content(option, path) for name, (option, path) in files.items() if path},
    )
    _check_references(options)
    logs.configure(verbosity=0)
    with errors_in_one_line(InstallError):
        plan = ask(lambda client: _plan(client, options))
        _show_findings(plan, data=output is not None)
        if plan.refused:
            raise Refused("nothing was changed")
        if output == "yaml":
            _print_objects(plan)
            return
        if dry_run:
            _show_steps(plan)
            return
        with can_be_continued(CONTINUE):
            ask(lambda client: _install(client, plan))
            if not no_wait:
                _wait(ask, plan, timeout)
                ask(lambda client: _install_later(client, plan))
    click.echo(_end(plan, waited=not no_wait))


def _names(operators: str | None) -> tuple[str, ...]:
    """The names in `--operators`; an empty list, as of a variable that is not set, is no choice."""
    names = tuple(filter(None, (name.strip() for name in (operators or "").split(","))))
    if operators is not None and not names:
        raise click.UsageError(f"--operators {operators!r}: name at least one, or leave it out")
    return names


def _check_references(options: "InstallOptions") -> None:
    """A usage error for what is no image or no registry: it becomes a part of a pod's arguments."""
    from quarterdeck.install.plan import wanted_image
    from quarterdeck.payload.images import is_image
    from quarterdeck.registry.reference import digest_of, has_registry

    image, registry = options.image, options.registry.rstrip("/")
    if image and not (is_image(image) and bool(digest_of(image)) == ("@" in image)):
        raise click.UsageError(f"--image {image[:200]!r}: not an image reference")
    if options.registry and not has_registry(f"{registry}/x"):
        raise click.UsageError(
            f"--registry {options.registry[:200]!r}: not a registry; write it like "
            "registry.example.test:5000/path"
        )
    wanted = wanted_image(options, quarterdeck.__version__)
    if wanted and not is_image(wanted):
        raise click.UsageError(f"{wanted[:200]!r}: not an image reference; it is too long")


def _content(option: str, path: Path) -> bytes:
    from quarterdeck.install.trust import TrustError, check_trust

    with path.open("rb") as file:
        content = file.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise CommandFailed(f"{path}: larger than {MAX_FILE >> 20} MiB; name another file")
    try:
        content.decode()
    except UnicodeDecodeError:
        raise CommandFailed(f"{path}: not a text; name a file in PEM or JSON") from None
    with errors_in_one_line(TrustError):
        check_trust(option, content)
    return content


async def _plan(client: "Client", options: "InstallOptions") -> "InstallationPlan":
    from quarterdeck.delivery.registry import installed
    from quarterdeck.install.prepare import prepare

    operators = list(installed().operators.values())
    return await prepare(client, options, operators, quarterdeck.__version__)


async def _install(client: "Client", plan: "InstallationPlan") -> None:
    from quarterdeck.cli.steps import Steps
    from quarterdeck.install.carry_out import carry_out

    with Steps() as step:
        await carry_out(client, plan, step)


async def _install_later(client: "Client", plan: "InstallationPlan") -> None:
    from quarterdeck.cli.steps import Steps
    from quarterdeck.install.carry_out import carry_out_later

    with Steps() as step:
        await carry_out_later(client, plan, step)


def _wait(ask: Callable[..., Any], plan: "InstallationPlan", timeout: timedelta) -> None:
    from quarterdeck.cli.steps import Steps
    from quarterdeck.install.carry_out import ITS_LOG, NO_VERSION_YET, follow

    last = ""

    async def until_there(client: "Client") -> None:
        nonlocal last
        with Steps() as step:
            async for last in follow(client, plan):
                step(visible(last))

    async def in_time(client: "Client") -> None:
        async with asyncio.timeout(timeout.total_seconds()):
            await until_there(client)

    try:
        ask(in_time)
    except TimeoutError:
        if last == NO_VERSION_YET:
            last = f"{last}, which says nothing; its log: {ITS_LOG}"
        raise Refused(
            f"not there after {timeout.total_seconds():.0f} s: {last}; it goes on by itself, and "
            "you can run this again to follow it"
        ) from None


def _show_findings(plan: "InstallationPlan", *, data: bool) -> None:
    """Show what was found; on standard error what is wrong, and all if the output is data."""
    for one in plan.findings:
        mark = click.style(f"{one.level:<8}", fg=_COLOURS[one.level])
        click.echo(f"{mark} {visible(one.message)}", err=data or one.level == "error")


def _show_steps(plan: "InstallationPlan") -> None:
    for applied in (*plan.steps, *plan.later):
        click.echo(f"{applied.step.title}:")
        for obj in applied.step.objects:
            where = obj["metadata"].get("namespace")
            name = f"{where}/{obj['metadata']['name']}" if where else obj["metadata"]["name"]
            click.echo(f"  {obj['kind']} {name}")
    click.echo("nothing was changed (--dry-run)")


def _print_objects(plan: "InstallationPlan") -> None:
    """Print the objects; Secrets are left out, because output ends in files and logs."""
    from quarterdeck.delivery.yaml_text import text

    shown = [obj for obj in plan.objects if obj["kind"] != "Secret"]
    for obj in plan.objects:
        if obj["kind"] == "Secret":
            name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
            click.echo(
                f"the Secret {namespace}/{name} is not printed; to make it: kubectl create secret "
                f"generic {name} --namespace={namespace} --type={obj['type']} "
                f"--from-file={next(iter(obj['data']))}=FILE",
                err=True,
            )
    sys.stdout.write(text(shown))


def _end(plan: "InstallationPlan", *, waited: bool) -> str:
    if not waited:
        later = " and to apply the objects for Prometheus" if plan.later else ""
        return f"started; to follow it{later}, run this again without --no-wait"
    if plan.way == "release":
        return "the release is applied; see: quarterdeck operators"
    return "the operators run; see: quarterdeck operators"
