"""`quarterdeck run`: run operators against the current kubeconfig, or in a cluster.

The environment is read only here, once.
"""

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import __version__
from quarterdeck import log as logs
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.run_options import RunCommand, given_options
from quarterdeck.delivery.registry import installed

if TYPE_CHECKING:
    from quarterdeck.controller import Operator
    from quarterdeck.delivery.declaration import Declaration
    from quarterdeck.delivery.registry import InstalledOperators
    from quarterdeck.kube import Connection

log = logs.get_logger("run")

log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="The format of log lines.",
    show_default=True,
)
"""The option of every command that logs as a program in a pod."""


def _chosen_namespaces(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """The namespaces, each once; a usage error for what cannot name one."""
    from quarterdeck.delivery.checks import check_label

    if not any(given):
        return ()  # As an empty variable gives it.
    for name in given:
        try:
            check_label("--namespace", name)
        except ValueError as error:
            raise click.BadParameter(f"{error}; give the option once for each") from None
    return tuple(dict.fromkeys(given))


@click.command(cls=RunCommand)
@click.option("--all", "everything", is_flag=True, help="Run all installed operators.")
@click.option("--kubeconfig", type=click.Path(), help="Use this kubeconfig file.")
@click.option("--context", help="Use this context of the kubeconfig.")
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    callback=_chosen_namespaces,
    help="Watch only this namespace. Can be given several times.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=False,
    show_default=True,
    help="Elect a leader by a Lease: of several replicas, only the leader reconciles.",
)
@click.option("--lease-namespace", help="The namespace of the Leases.  [default: $POD_NAMESPACE]")
@click.option(
    "--lease-duration",
    default=15.0,
    show_default=True,
    help="How many seconds after the last renewal another replica takes the Lease.",
)
@click.option(
    "--renew-deadline",
    default=10.0,
    show_default=True,
    help="How many seconds after its last successful renewal the leader exits.",
)
@click.option(
    "--retry-period",
    default=2.0,
    show_default=True,
    help="How many seconds the replicas wait between two requests for the Lease.",
)
@click.option(
    "--watch-grace-period",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="After how many seconds without a working watch an operator is not ready.",
)
@click.option(
    "--renew-certificate",
    "certificate_lifetime",
    type=Duration(whole=True),
    help="Ask for a new client certificate of this lifetime when half of that of the kubeconfig's "
    "is over. The kubeconfig has to name one file that has certificate and key.",
)
@click.option(
    "--probe-address",
    default="127.0.0.1:8081",
    show_default=True,
    help="The address of /healthz, /readyz and /metrics; with port 0, a free port. `:8081` is on "
    "all addresses, or on $POD_IP alone if that is a loopback address.",
)
@log_format_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    names: tuple[str, ...],
    everything: bool,
    kubeconfig: str | None,
    context: str | None,
    namespaces: tuple[str, ...],
    leader_elect: bool,
    lease_namespace: str | None,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    watch_grace_period: float,
    certificate_lifetime: timedelta | None,
    probe_address: str,
    log_format: logs.LogFormat,
    **_of_one_operator: Any,
) -> None:
    """Run operators until stopped.

    Select operators with --operator, or run all installed operators with --all.

    The connection comes from --kubeconfig, $KUBECONFIG, the pod's ServiceAccount or
    ~/.kube/config, whichever is found first. If an operator cannot start, the others still run, and
    /readyz names it.
    """
    # Imported here, so that `quarterdeck --help` does not wait for the HTTP library.
    import asyncio

    from quarterdeck.controller import Process, ProcessSettings, Timing

    try:
        times = Timing(duration=lease_duration, deadline=renew_deadline, retry=retry_period)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    settings = ProcessSettings(
        identity=identity(os.environ),
        namespaces=namespaces,
        election=times if leader_elect else None,
        watch_grace_period=watch_grace_period,
        certificate_lifetime=certificate_lifetime,
        probe_address=own_probe_address(probe_address, os.environ),
        release_version=release_version(os.environ),
    )
    logs.configure(verbosity=ctx.obj, fmt=log_format)
    registry = installed()
    for left_out in registry.left_out:
        log.warning("operator left out", reason=str(left_out))
    names = _selected(registry, names, everything=everything)
    given = given_options(ctx, names)
    namespace_of_pod = os.environ.get("POD_NAMESPACE", "")
    chosen = [
        _operator(
            registry.operators[name],
            given.get(name, {}),
            namespace_of_pod=namespace_of_pod,
            lease_namespace=lease_namespace,
        )
        for name in names
    ]
    try:
        connection = connect(kubeconfig, context, os.environ)
        asyncio.run(Process(chosen, connection, settings).run())
    except Exception as error:
        # The last line of the log is the reason of the exit.
        log.error("exiting", reason=f"{type(error).__name__}: {error}")
        sys.exit(1)
    log.info("stopped")


def _selected(
    registry: "InstalledOperators", names: tuple[str, ...], *, everything: bool
) -> tuple[str, ...]:
    """The names of the operators to run; a usage error if none is named or installed."""
    if not registry.operators:
        raise click.UsageError("no operator is installed: install this package again")
    if not names and not everything:
        raise click.UsageError(
            f"nothing runs: name operators with --operator, or all of them with --all, which would "
            f"run {', '.join(registry.chosen())}"
        )
    return registry.chosen(() if everything else names)


def identity(env: Mapping[str, str]) -> str:
    """The process's identity in a Lease: the pod or the machine, and a random part.

    The random part distinguishes a restarted container from the one before, which may still hold
    the Lease.
    """
    return f"{env.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"


def own_probe_address(address: str, env: Mapping[str, str]) -> str:
    """The address with the pod's own as host if it names none and the pod shares a machine.

    Pods that share a machine, as those of a local cluster do, have loopback addresses.
    """
    pod = env.get("POD_IP", "")
    try:
        shared = ip_address(pod).is_loopback
    except ValueError:
        return address
    if not address.startswith(":") or not shared:
        return address
    return f"[{pod}]{address}" if ":" in pod else f"{pod}{address}"


def release_version(env: Mapping[str, str]) -> str:
    """The version that operators report: that of their release, else that of the program."""
    from quarterdeck.payload.model import PLACEHOLDER_VERSION

    version = env.get("RELEASE_VERSION", "")
    return __version__ if version in ("", PLACEHOLDER_VERSION) else version


def connect(kubeconfig: str | None, context: str | None, env: Mapping[str, str]) -> "Connection":
    """The connection that the options and the environment select."""
    from quarterdeck.kube import in_cluster, load_kubeconfig

    asked_for = kubeconfig or context or env.get("KUBECONFIG")
    if not asked_for and env.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(env)
    return load_kubeconfig(kubeconfig, context, env)


def _operator(
    declared: "Declaration",
    options: Mapping[str, Any],
    *,
    namespace_of_pod: str,
    lease_namespace: str | None,
) -> "Operator":
    from functools import partial

    from quarterdeck.controller import Operator
    from quarterdeck.delivery.setting_up import set_up

    own_namespace = namespace_of_pod or declared.namespace
    return Operator(
        name=declared.name,
        setup=partial(set_up, declared, options),
        field_manager=declared.field_manager,
        lease_namespace=lease_namespace or own_namespace,
        lease_name=declared.account,
        namespace=own_namespace,
    )
