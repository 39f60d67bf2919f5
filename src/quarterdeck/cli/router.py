"""`quarterdeck router`: the program in the pods of an IngressController.

Its settings are in its environment, which the ingress operator writes. It is read only here, once.
"""

import os
import sys
from pathlib import Path

import click
import msgspec

from quarterdeck import log as logs
from quarterdeck.cli.run import connect, identity, log_format_option, release_version

log = logs.get_logger("router")


@click.command()
@click.option("--kubeconfig", type=click.Path(), help="Use this kubeconfig file.")
@click.option("--context", help="Use this context of the kubeconfig.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default="/var/lib/haproxy",
    show_default=True,
    help="The directory of HAProxy's configuration and sockets.",
)
@click.option(
    "--allow-external-names",
    is_flag=True,
    help="Route to Services of type ExternalName.  [env var: ROUTER_ALLOW_EXTERNAL_NAMES]",
)
@click.option(
    "--allow-loopback-backends",
    is_flag=True,
    help="Let a backend have a loopback address.  [env var: ROUTER_ALLOW_LOOPBACK_BACKENDS]",
)
@click.option(
    "--wait-for-end",
    is_flag=True,
    help="Route nothing; wait until the router of this pod has ended. The sidecar does this before "
    "it stops, so that the last access lines arrive.",
)
@log_format_option
@click.pass_context
def router(
    ctx: click.Context,
    /,
    *,
    kubeconfig: str | None,
    context: str | None,
    state_dir: Path,
    allow_external_names: bool,
    allow_loopback_backends: bool,
    wait_for_end: bool,
    log_format: logs.LogFormat,
) -> None:
    """Route traffic as the Ingress objects say, by HAProxy, until stopped.

    The ingress operator runs it in the pods of each IngressController. Access lines go where its
    environment says; its own log and HAProxy's notices go to its output.
    """
    if wait_for_end:
        from quarterdeck.router.wait_for_end import wait_until_ended

        wait_until_ended()
        return
    # Imported here, so that `quarterdeck --help` does not wait for the HTTP library.
    import asyncio

    from quarterdeck.controller import Operator, Process, ProcessSettings
    from quarterdeck.haproxy.errors import HAProxyError
    from quarterdeck.router.controller import Router
    from quarterdeck.router.settings import read_settings

    logs.configure(verbosity=ctx.obj, fmt=log_format)
    try:
        read = read_settings(os.environ)
        settings = msgspec.structs.replace(
            read,
            external_names=read.external_names or allow_external_names,
            loopback_backends=read.loopback_backends or allow_loopback_backends,
        )
        directory = state_dir.absolute()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        process = ProcessSettings(
            identity=identity(os.environ),
            probe_address=f"{settings.bind_address}:{settings.stats_port}",
            release_version=release_version(os.environ),
        )
        operator = Operator(
            name="router",
            setup=lambda manager: Router(manager, settings, directory).start(),
            field_manager="quarterdeck-router",
            lease_namespace="",
            lease_name="",
        )
        connection = connect(kubeconfig, context, os.environ)
        asyncio.run(Process([operator], connection, process).run())
    except HAProxyError as error:
        log.error("exiting", reason=str(error))
        sys.exit(2)
    except Exception as error:
        # The last line of the log is the reason of the exit.
        log.error("exiting", reason=f"{type(error).__name__}: {error}")
        sys.exit(1)
    log.info("stopped")
