"""`quarterdeck console`: serve the web console."""

import asyncio
import errno
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import log as logs
from quarterdeck.cli.output import CommandFailed, errors_in_one_line

if TYPE_CHECKING:
    import ssl

    from quarterdeck.console.settings import Settings
    from quarterdeck.kube import Connection

READABLE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.option("--kubeconfig", type=click.Path(), help="Use this kubeconfig file.")
@click.option("--context", help="Use this context of the kubeconfig.")
@click.option("--address", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8443,
    show_default=True,
    help="The port to listen on; 0 is a free one.",
)
@click.option("--tls-cert", type=READABLE, help="Serve HTTPS with this certificate.")
@click.option("--tls-key", type=READABLE, help="The key of the certificate.")
@click.option(
    "--behind-tls",
    is_flag=True,
    help="All requests come through an Ingress with TLS, which sets X-Forwarded-Proto.",
)
@click.option(
    "--host-name", "host_names", multiple=True, help="A name by which browsers reach the console."
)
@click.option("--one-time-link", is_flag=True, help="Print a link that logs in once, as you.")
@click.option(
    "--until-input-ends", is_flag=True, hidden=True, help="End when the standard input ends."
)
@click.option("--cluster-name", default="", help="The name of the cluster, to show.")
@click.option(
    "--releases",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The directory of releases, for the picture of run levels.",
)
@click.pass_context
def console(
    ctx: click.Context,
    /,
    *,
    kubeconfig: str | None,
    context: str | None,
    one_time_link: bool,
    until_input_ends: bool,
    **options: Any,
) -> None:
    """Serve the web console, until Ctrl-C.

    Everybody logs in with their own token, and sees and does what the API server allows them. The
    console has no rights of its own. The kubeconfig names the API server; its credentials serve
    only --one-time-link.
    """
    from quarterdeck.cli.run import connect
    from quarterdeck.kube import KubeError, in_cluster

    logs.configure(verbosity=ctx.obj if isinstance(ctx.obj, int) else 2)
    settings, tls = _settings(options)
    with errors_in_one_line(KubeError, OSError):
        chosen = kubeconfig or context or os.environ.get("KUBECONFIG")
        if not chosen and os.environ.get("KUBERNETES_SERVICE_HOST"):
            if one_time_link:
                raise CommandFailed("--one-time-link: a pod has no credentials to give away")
            connection = in_cluster(os.environ, identified=False)
        else:
            connection = connect(kubeconfig, context, os.environ)
        try:
            asyncio.run(_serve(settings, connection, tls, one_time_link, until_input_ends))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
                raise
            where, why = f"{settings.address}:{settings.port}", os.strerror(error.errno)
            raise CommandFailed(
                f"{where}: {why}; choose others with --address and --port"
            ) from None


def _settings(options: dict[str, Any]) -> "tuple[Settings, ssl.SSLContext | None]":
    import ssl

    from quarterdeck.console.settings import Settings

    certificate, key = options["tls_cert"], options["tls_key"]
    if (certificate is None) != (key is None):
        raise CommandFailed("give --tls-cert and --tls-key together")
    settings = Settings(
        address=options["address"],
        port=options["port"],
        tls_certificate=certificate,
        tls_key=key,
        host_names=frozenset(options["host_names"]),
        behind_tls=options["behind_tls"],
        cluster=options["cluster_name"],
        releases=options["releases"],
    )
    if certificate is None:
        return settings, None
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        tls.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise CommandFailed(
            f"{certificate} and {key} are not a pair in PEM form: {error}"
        ) from None
    return settings, tls


async def _serve(
    settings: "Settings",
    connection: "Connection",
    tls: "ssl.SSLContext | None",
    one_time_link: bool,
    until_input_ends: bool,
) -> None:
    from quarterdeck.cli.console_sources import sources
    from quarterdeck.console.app import serving
    from quarterdeck.console.state import Console

    running = Console(settings, connection, sources())
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if until_input_ends:
        asyncio.get_running_loop().add_reader(sys.stdin, stop.set)
    async with serving(running, tls) as (address, port):
        url = f"{'https' if settings.tls else 'http'}://{_shown(address)}:{port}/"
        click.echo(f"console at {url}")
        if one_time_link:
            link = f"{url}link/{running.links.make(running.clock())}"
            click.echo(f"log in once, as you, within an hour: {link}")
        sys.stdout.flush()
        await stop.wait()


def _shown(address: str) -> str:
    if address in ("127.0.0.1", "0.0.0.0", "::", "::1"):  # noqa: S104 - to show, not to listen on
        return "localhost" if address in ("127.0.0.1", "::1") else "127.0.0.1"
    return f"[{address}]" if ":" in address else address
