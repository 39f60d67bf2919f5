"""The agent as a program: `python -m quarterdeck.localcluster.node`.

The local cluster's supervisor starts it; its arguments and environment are read here, once.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import msgspec

from quarterdeck import log
from quarterdeck.kube import Connection, KubeError, load_kubeconfig
from quarterdeck.localcluster.components import THIS_MACHINE
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.node.agent import Agent
from quarterdeck.localcluster.node.images import this_installation
from quarterdeck.localcluster.node.logs.server import Serving
from quarterdeck.localcluster.node.pod.lifecycle import CONTAINER_BACKOFF
from quarterdeck.localcluster.node.sandbox.isolation import Isolation, find_isolation, proot_warning
from quarterdeck.localcluster.node.settings import LEASE_SECONDS, NodeSettings
from quarterdeck.localcluster.state import selecting_options
from quarterdeck.log import get_logger

EXIT_CANNOT = 2
"""The exit code if the agent cannot run on this machine."""


def main() -> None:
    """Run the agent until SIGTERM or SIGINT."""
    arguments = _parser().parse_args()
    log.configure(verbosity=arguments.verbosity)
    try:
        isolation = find_isolation()
        connection = load_kubeconfig(arguments.kubeconfig)
    except (LocalClusterError, KubeError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_CANNOT)
    if isolation is Isolation.PROOT:
        get_logger("node").warning(proot_warning())
    serving = Serving(
        certificate=arguments.tls_certificate,
        key=arguments.tls_key,
        authority=arguments.client_authority,
        port=arguments.port,
        client=arguments.client_name,
        cluster=selecting_options(arguments.state_dir, os.environ) if arguments.state_dir else "",
    )
    asyncio.run(Agent(_settings(arguments, connection, isolation), connection, serving).run())


def user_secrets(env: Mapping[str, str]) -> list[PurePosixPath]:
    """The user's paths that pods must not see: kubeconfigs, and the state of other clusters."""
    home = env.get("HOME", "/")
    state = env.get("XDG_STATE_HOME") or f"{home}/.local/state"
    paths = [f"{home}/.kube", f"{state}/quarterdeck", *env.get("KUBECONFIG", "").split(":")]
    return [PurePosixPath(path) for path in paths if path.startswith("/")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quarterdeck node", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--name", default=THIS_MACHINE)
    parser.add_argument("--pods", type=Path, required=True, help="where pods' files go")
    parser.add_argument(
        "--manifests", type=Path, action="append", default=[], help="a directory of static pods"
    )
    parser.add_argument("--state-dir", type=Path, help="the cluster's, for commands in messages")
    parser.add_argument("--mask", type=PurePosixPath, action="append", default=[])
    parser.add_argument("--show", type=PurePosixPath, action="append", default=[])
    parser.add_argument("--credentials", type=PurePosixPath)
    parser.add_argument("--port", type=int, default=0, help="where logs are served; 0 picks one")
    parser.add_argument("--tls-certificate", type=Path, required=True)
    parser.add_argument("--tls-key", type=Path, required=True)
    parser.add_argument("--client-authority", type=Path, required=True)
    parser.add_argument("--client-name", required=True, help="who may read logs")
    parser.add_argument("--back-off-first", type=float, default=CONTAINER_BACKOFF.first)
    parser.add_argument("--back-off-maximum", type=float, default=CONTAINER_BACKOFF.maximum)
    parser.add_argument("--back-off-reset", type=float, default=CONTAINER_BACKOFF.reset)
    parser.add_argument("--token-share", type=float, default=0.8)
    parser.add_argument("--lease-seconds", type=int, default=LEASE_SECONDS)
    parser.add_argument("-v", "--verbosity", type=int, default=log.NORMAL)
    return parser


def _settings(
    arguments: argparse.Namespace, connection: Connection, isolation: Isolation
) -> NodeSettings:
    server = urlsplit(connection.server)
    return NodeSettings(
        name=arguments.name,
        pods=arguments.pods,
        manifests=tuple(arguments.manifests),
        api_host=server.hostname or "127.0.0.1",
        api_port=server.port or 443,
        masked=(*arguments.mask, PurePosixPath(arguments.pods), *user_secrets(os.environ)),
        shown=tuple(arguments.show),
        credentials=arguments.credentials,
        installation=this_installation(),
        root=os.geteuid() == 0 and isolation is Isolation.NAMESPACES,
        isolation=isolation,
        back_off=msgspec.structs.replace(
            CONTAINER_BACKOFF,
            first=arguments.back_off_first,
            maximum=arguments.back_off_maximum,
            reset=arguments.back_off_reset,
        ),
        token_share=arguments.token_share,
        lease_seconds=arguments.lease_seconds,
    )


if __name__ == "__main__":
    main()
