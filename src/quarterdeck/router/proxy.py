"""Runs HAProxy: starts it, reloads it without losing a connection, and starts it again if it ends.

HAProxy runs as master and worker. A reload (SIGUSR2) starts a worker with the new configuration,
which gets the listening sockets of the old one; the old one finishes its connections.
Whoever wants to follow a worker to its end is told before that is stopped.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.haproxy.check import Complaint, bare_environment, run_check
from quarterdeck.haproxy.errors import HAProxyError
from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import CONFIG_FILE, admin_socket, render
from quarterdeck.log import get_logger
from quarterdeck.router.admin import CommandError, ask, order
from quarterdeck.router.generations import Generations
from quarterdeck.router.notices import pass_on
from quarterdeck.router.orphans import soft_stop_orphans

log = get_logger("router.proxy")

START_TIMEOUT = 60.0
"""Seconds in which a new worker answers."""
STOP_GRACE_PERIOD = 30
"""Seconds in which HAProxy finishes its connections when the router stops."""
STEADY_AFTER = 60.0
"""Seconds after which the failures before count no more."""
Occasion = Literal["reload", "stop", "orphan"]
"""Why a worker is stopped; an orphan is that of an earlier router."""
BeforeStop = Callable[[Occasion], Awaitable[None]]
RESTARTS = Backoff(base=0.05, limit=30.0)


class ConfigRefusedError(HAProxyError):
    """HAProxy refuses a configuration; it runs on with the one before."""

    def __init__(self, complaints: list[Complaint], config: str) -> None:
        super().__init__("; ".join(complaint.words for complaint in complaints))
        self.complaints = complaints
        self.config = config
        """The text of the haproxy.cfg that is refused."""


class HAProxy:
    """HAProxy and its files."""

    def __init__(
        self, directory: Path, program: str = "haproxy", *, stop_delay: float = 0.0
    ) -> None:
        self.sockets = str(directory)
        """The directory of the sockets."""
        self.master_socket = f"{directory}/master.sock"
        self._program = program
        self._stop_delay = stop_delay
        self._generations = Generations(directory)
        self._process: asyncio.subprocess.Process | None = None
        self._notices: asyncio.Task[None] | None = None
        self._orphans: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._changing = asyncio.Lock()
        self.generation = self._generations.number()
        """The number of the configuration that runs."""
        self.config: Config | None = None
        """What runs; None before the first `load`."""
        self.before_stop: BeforeStop | None = None
        """What is done while the old worker still runs, and has its admin socket."""
        self.after_stop: Callable[[], None] | None = None
        """What is done when HAProxy has ended for good."""
        self.reloads = 0
        self.starts = 0
        self.trouble = "no configuration yet"
        """Why HAProxy does not serve, in one line; empty if it does."""

    @property
    def admin_socket(self) -> str:
        """The admin socket of the newest worker."""
        return admin_socket(self.sockets, self.generation)

    async def run(self) -> None:
        """Keep HAProxy running until cancelled; then let it finish its connections."""
        if self.generation:
            # Routes from before a crash are better than none while the caches fill.
            self._wanted.set()
        retries = Retries(RESTARTS)
        clock = asyncio.get_running_loop().time
        try:
            while True:
                await self._wanted.wait()
                began = clock()
                try:
                    code = await self._run_once()
                    self.trouble = f"HAProxy ended with {code}"
                except (HAProxyError, OSError) as error:
                    self.trouble = f"HAProxy does not start: {error}"
                log.error("haproxy is down", reason=self.trouble)
                if clock() - began > STEADY_AFTER:
                    retries = Retries(RESTARTS)
                await asyncio.sleep(retries.next())
        finally:
            if self._orphans is not None:
                self._orphans.cancel()
            await self._stop()
            if self.after_stop is not None:
                self.after_stop()

    async def load(self, config: Config) -> None:
        """Run with this configuration; if HAProxy refuses it, raise `ConfigRefusedError`."""
        async with self._changing:
            await self._install(config, replaces=self._process is not None)
            if self._process is None:
                self._wanted.set()
                return
            self.reloads += 1
            self._process.send_signal(signal.SIGUSR2)
            await self._until_it_answers()
            log.info("haproxy reloaded", generation=self.generation)

    async def change(self, commands: tuple[str, ...], adapted: Config) -> None:
        """Change what runs by commands; raises `CommandError` if that fails half-way."""
        async with self._changing:
            for command in commands:
                await order(self.admin_socket, command)
            self.config = adapted

    async def _install(self, config: Config, *, replaces: bool = False) -> None:
        """Write the files, check them, and let them count from now on."""
        number = self.generation + 1
        files = render(config, number)
        path = self._generations.write(number, files)
        if found := await run_check(str(path), program=self._program):
            self._generations.discard(number)
            raise ConfigRefusedError(found, files[CONFIG_FILE])
        if replaces and self.before_stop is not None:
            await self.before_stop("reload")
        self._generations.make_current(number)
        self.generation, self.config = number, config

    async def _run_once(self) -> int:
        """Start HAProxy, wait until it ends, and return its exit code."""
        async with self._changing:
            if self.config is not None and self.starts:
                # Commands have changed what ran since the files were written.
                await self._install(self.config)
            if self.before_stop is not None and not self.starts:
                await self.before_stop("orphan")
            # A HAProxy from before a crash may answer there.
            self._generations.remove(self.admin_socket)
            self._process = await asyncio.create_subprocess_exec(
                *(self._program, "-W", "-S", f"{self.master_socket},mode,600"),
                *("-f", str(self._generations.config)),
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=bare_environment(),
            )
            self.starts += 1
            assert self._process.stderr is not None  # noqa: S101 - it is a pipe
            self._notices = asyncio.create_task(pass_on(self._process.stderr), name="notices")
            try:
                await self._until_it_answers()
                self._stop_orphans(self._process.pid)
                self.trouble = ""
                log.info("haproxy runs", generation=self.generation, pid=self._process.pid)
            except CommandError:
                if self._process.returncode is None:
                    self._process.kill()
        code = await self._process.wait()
        self._process = None
        if self._notices is not None:
            await self._notices
        return code

    def _stop_orphans(self, ours: int) -> None:
        if self._orphans is not None:
            self._orphans.cancel()
        self._orphans = asyncio.create_task(
            soft_stop_orphans(self.master_socket, ours), name="orphans"
        )

    async def _until_it_answers(self) -> None:
        """Wait until the worker of this generation runs; raise `CommandError` if it does not."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + START_TIMEOUT
        while True:
            try:
                await ask(self.admin_socket, "show info")
            except CommandError:
                ended = self._process is None or self._process.returncode is not None
                if ended or clock() > deadline:
                    raise
                await asyncio.sleep(0.02)
            else:
                return

    async def _stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        self.trouble = "stopping"
        # New connections still come until everybody knows that this router is not ready.
        await asyncio.sleep(self._stop_delay)
        if self.before_stop is not None:
            await self.before_stop("stop")
        waiting = asyncio.ensure_future(process.wait())
        for _ in range(STOP_GRACE_PERIOD):
            # Each second: a master that is just replacing itself for a reload misses a signal.
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGUSR1)
            if (await asyncio.wait([waiting], timeout=1.0))[0]:
                break
        else:
            with suppress(ProcessLookupError):
                process.terminate()
            await waiting
        if self._notices is not None:
            await self._notices
