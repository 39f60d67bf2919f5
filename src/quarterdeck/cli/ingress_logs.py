"""`quarterdeck ingress logs`: the access lines of all pods of an IngressController.

`operators.ingress.read_lines` reads them; this module shows them.
"""

import sys
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.output import CommandFailed
from quarterdeck.terminal import visible

if TYPE_CHECKING:
    from quarterdeck.kube import Client
    from quarterdeck.operators.ingress.read_lines import Line

Form = Literal["columns", "json", "raw"]

HEADER = (
    "TIME                      CLIENT                 CODE     BYTES       TOOK  BACKEND  REQUEST"
)
NEEDED_TO_READ = (
    "it takes the right to list pods and to get pods/log in the namespace openshift-ingress"
)
INTERRUPTED = 130


@click.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until interrupted.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["columns", "json", "raw"]),
    default="columns",
    show_default=True,
    help="Columns for people, an object for each line, or the lines as they are.",
)
@cluster_access
def logs(name: str, follow: bool, output: Form, ask: Callable[..., Any]) -> None:
    """Show the access lines of all pods of the IngressController NAME, in the order of time.

    A line in HAProxy's default format is shown in columns; a line in a format of your own is shown
    as it is. With --follow, pods that come later are read too, and the standard error tells when a
    pod comes or goes.

    The exit code is 0; 2 if there is nothing to read, or it cannot be read.
    """
    from quarterdeck.kube import Forbidden
    from quarterdeck.operators.ingress.read_lines import NoLines, follow_lines, present_lines

    async def question(client: "Client") -> None:
        show = _Shown(output)
        if not follow:
            lines = await present_lines(client, name)
            for line in lines:
                show(line)
            if not lines:
                _note("there is no access line yet; --follow waits for new ones")
            return
        async with aclosing(follow_lines(client, name, _note)) as new:
            async for line in new:
                show(line)
                # Somebody waits for it, perhaps at the other end of a pipe.
                sys.stdout.flush()

    try:
        ask(question)
    except NoLines as error:
        raise CommandFailed(str(error)) from None
    except Forbidden as error:
        raise CommandFailed(f"{error.message}; {NEEDED_TO_READ}") from None
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


class _Shown:
    """Prints lines, and the header of the columns before the first one that has some."""

    def __init__(self, output: Form) -> None:
        self._output = output
        self._headed = False

    def __call__(self, line: "Line") -> None:
        from quarterdeck.haproxy.access_line import parse_access_line

        if self._output == "columns" and not self._headed and parse_access_line(line.text):
            click.echo(HEADER)
            self._headed = True
        click.echo(shown(line.text, self._output, line.pod))


def shown(line: str, output: Form, pod: str = "") -> str:
    """A line of a pod as it is printed."""
    from quarterdeck.haproxy.access_line import parse_access_line

    parsed = None if output == "raw" else parse_access_line(line)
    if output == "json":
        fields = {"line": line} if parsed is None else msgspec.to_builtins(parsed)
        return msgspec.json.encode({**({"pod": pod} if pod else {}), **fields}).decode()
    if parsed is None:
        return visible(line)
    columns = (
        f"{parsed.time:<24}",
        f"{parsed.client:<21}",
        f"{parsed.status:>4}",
        f"{parsed.bytes:>8}",
        f"{parsed.milliseconds:>6} ms",
        f"{parsed.backend}/{parsed.server}",
        *([parsed.captures] if parsed.captures else []),
        parsed.request,
    )
    return visible("  ".join(columns))


def _note(text: str) -> None:
    click.echo(visible(text), err=True)
