"""`quarterdeck run`: run operators against the current kubeconfig, or in a cluster.

The environment is read here, once, and nowhere below.
"""

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import __version__
from quarterdeck import log as logs
from quarterdeck.cli.run_options import OPTIONS, given_options
from quarterdeck.operators import OPERATORS

if TYPE_CHECKING:
    from quarterdeck.controller import Operator
    from quarterdeck.kube import Connection

log = logs.get_logger("run")


@click.command()
@click.option(
    "--operator",
    "names",
    type=click.Choice(sorted(OPERATORS)),
    multiple=True,
    help="Run this operator; may be given several times. All of them without it.",
)
@click.option("--kubeconfig", type=click.Path(), help="Use this kubeconfig file.")
@click.option("--context", help="Use this context of the kubeconfig.")
@click.option("--namespace", default="", help="Watch only this namespace.")
@click.option(
    "--leader-elect/--no-leader-elect",
    default=False,
    show_default=True,
    help="Work only while holding the operator's Lease, so that several replicas may run.",
)
@click.option("--lease-namespace", help="Where the Leases are; POD_NAMESPACE without it.")
@click.option("--lease-duration", default=15.0, show_default=True, help="Seconds; see the docs.")
@click.option("--renew-deadline", default=10.0, show_default=True, help="Seconds; see the docs.")
@click.option("--retry-period", default=2.0, show_default=True, help="Seconds; see the docs.")
@click.option(
    "--probe-address",
    default="127.0.0.1:8081",
    show_default=True,
    help="Where /healthz, /readyz and /metrics are served; port 0 picks one.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    names: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    leader_elect: bool,
    lease_namespace: str | None,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    probe_address: str,
    log_format: logs.LogFormat,
    **_of_one_operator: Any,
) -> None:
    """Run operators until stopped.

    Uses --kubeconfig, $KUBECONFIG, the pod's own ServiceAccount, or ~/.kube/config, whichever
    comes first. One operator that cannot start does not stop the others: /readyz says which.
    """
    # Here, so that `quarterdeck --help` does not wait for the HTTP library.
    import asyncio

    from quarterdeck.controller import Process, Settings, Timing

    try:
        times = Timing(duration=lease_duration, deadline=renew_deadline, retry=retry_period)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    settings = Settings(
        identity=identity(os.environ),
        namespace=namespace,
        election=times if leader_elect else None,
        probe_address=probe_address,
        release_version=release_version(os.environ),
    )
    logs.configure(verbosity=ctx.obj, fmt=log_format)
    names = names or tuple(sorted(OPERATORS))
    given = given_options(ctx, names)
    chosen = [
        _operator(name, given.get(name, {}), lease_namespace or os.environ.get("POD_NAMESPACE"))
        for name in dict.fromkeys(names)
    ]
    try:
        connection = connect(kubeconfig, context, os.environ)
        asyncio.run(Process(chosen, connection, settings).run())
    except Exception as error:
        # The last line of a process says why it ended.
        log.error("exiting", reason=f"{type(error).__name__}: {error}")
        sys.exit(1)
    log.info("stopped")


run.params += [option for options in OPTIONS.values() for option in options]


def identity(env: Mapping[str, str]) -> str:
    """Who this process is in a Lease: the pod, or the machine, and a random part.

    The random part tells a restarted container from the one before, which may still be seen
    as holding the Lease.
    """
    return f"{env.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"


def release_version(env: Mapping[str, str]) -> str:
    """What operators report as their version: their release's, or the program's if in none."""
    from quarterdeck.operators.cluster_version.payload.model import PLACEHOLDER_VERSION

    told = env.get("RELEASE_VERSION", "")
    return __version__ if told in ("", PLACEHOLDER_VERSION) else told


def connect(kubeconfig: str | None, context: str | None, env: Mapping[str, str]) -> "Connection":
    """The cluster that the options and the environment mean."""
    from quarterdeck.kube import in_cluster, load_kubeconfig

    asked_for = kubeconfig or context or env.get("KUBECONFIG")
    if not asked_for and env.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(env)
    return load_kubeconfig(kubeconfig, context, env)


def _operator(name: str, options: Mapping[str, Any], lease_namespace: str | None) -> "Operator":
    from functools import partial

    from quarterdeck.controller import Operator
    from quarterdeck.operators import field_manager, set_up

    return Operator(
        name=name,
        setup=partial(set_up, name, options),
        field_manager=field_manager(name),
        lease_namespace=lease_namespace or OPERATORS[name].namespace,
        lease_name=OPERATORS[name].lease,
    )
