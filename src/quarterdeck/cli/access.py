"""Gives commands access to a cluster: `--kubeconfig`, `--context`, and errors in one line."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quarterdeck.cli.output import CommandFailed, errors_in_one_line

if TYPE_CHECKING:
    from quarterdeck.kube import Client

T = TypeVar("T")


def cluster_access(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--kubeconfig` and `--context`; the command gets a function that calls with a client."""

    @click.option("--kubeconfig", type=click.Path(), help="Use this kubeconfig file.")
    @click.option("--context", help="Use this context of the kubeconfig.")
    @wraps(command)
    def with_access(*, kubeconfig: str | None, context: str | None, **rest: Any) -> None:
        from quarterdeck.cli.run import connect
        from quarterdeck.kube import Client, KubeError

        async def ask(question: "Callable[[Client], Awaitable[T]]") -> T:
            async with Client(connect(kubeconfig, context, os.environ)) as client:
                return await question(client)

        with errors_in_one_line(KubeError):
            command(ask=lambda question: asyncio.run(ask(question)), **rest)

    return with_access


@contextmanager
def can_be_continued(how: str) -> Iterator[None]:
    """End a command in the middle of its changes with one line, which says how to continue."""
    from quarterdeck.kube import KubeError

    try:
        yield
    except KubeError as error:
        raise CommandFailed(f"{error}; {how}") from error
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise CommandFailed(f"stopped; {how}") from None
