"""The console beside a local cluster in the foreground: a process that ends with it."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from quarterdeck.localcluster.process import how_it_ended
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import ClusterStatus

STOP_GRACE_PERIOD = 5.0


class LocalConsole:
    """Starts the console once the cluster is ready."""

    def __init__(self, layout: Layout, name: str) -> None:
        self._layout = layout
        self._name = name
        self._process: subprocess.Popen[str] | None = None
        self._stopping = False

    def start(self, status: ClusterStatus) -> None:
        """Start the console, and show its address and a one-time link."""
        command = [
            *(sys.executable, "-m", "quarterdeck", "--verbosity=0", "console"),
            *(f"--kubeconfig={status.kubeconfig}", "--port=0", f"--cluster-name={self._name}"),
            *("--one-time-link", "--until-input-ends"),
        ]
        releases = self._layout.root / "releases"
        if releases.is_dir():
            command.append(f"--releases={releases}")
        # The open pipe ends it, also if this process is killed; Ctrl-C is for this process alone.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        output = self._process.stdout
        lines = [output.readline().strip() for _ in range(2)] if output else []
        if not all(lines):
            click.echo("\nThe web console did not start.", err=True)
            return
        click.echo("\nThe web console, and a link that logs you in once, within an hour:")
        for line in lines:
            click.echo(f"  {line.rpartition(' ')[2]}")
        watcher = threading.Thread(target=self._tell_its_end, args=[self._process], daemon=True)
        watcher.start()

    def _tell_its_end(self, process: "subprocess.Popen[str]") -> None:
        """Wait for the end of the console, and say so if nobody asked for it."""
        code = process.wait()
        if not self._stopping:
            again = "start another one with: quarterdeck console"
            click.echo(f"\nThe web console {how_it_ended(code)}; {again}", err=True)

    def stop(self) -> None:
        """End the console."""
        process = self._process
        if process is None:
            return
        self._stopping = True
        process.terminate()
        try:
            process.wait(STOP_GRACE_PERIOD)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def local_console(layout: Layout, name: str) -> Iterator[LocalConsole]:
    """A console that ends with the context."""
    console = LocalConsole(layout, name)
    try:
        yield console
    finally:
        console.stop()
