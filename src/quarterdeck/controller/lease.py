"""The requests of leader election: acquire the Lease, renew it, release it.

`election.py` decides. Every call is bounded by the renew deadline, so a slow server cannot make a
process lead for longer.
"""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime

from quarterdeck.api.meta import LEASES, Key, Object
from quarterdeck.controller.election import Candidate, LeadershipLost, Wait
from quarterdeck.kube import Client, Conflict, KubeError, NotFound
from quarterdeck.log import get_logger

log = get_logger("controller.lease")


class Lease:
    """Acquires, renews and releases one Lease."""

    def __init__(
        self,
        client: Client,
        candidate: Candidate,
        *,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._candidate = candidate
        self._clock = clock
        self._wall = wall
        self.key = Key(candidate.namespace, candidate.name)
        self._ours: Object | None = None
        self.timing = candidate.timing
        self.trouble = ""
        """Why the last request for the Lease failed, in one line; empty if it succeeded."""

    @property
    def leads(self) -> bool:
        """Whether this process may write now."""
        return self._candidate.leads(self._clock())

    def check(self) -> None:
        """Raise `LeadershipLost` unless this process may write now; called before each write."""
        if not self.leads:
            raise LeadershipLost(f"lease {self.key}: not renewed in time")

    async def take_if_free(self) -> bool:
        """Try once to acquire the Lease; False also if the server does not answer soon."""
        try:
            async with asyncio.timeout(self.timing.retry):
                waits = await self._try_once()
        except (KubeError, TimeoutError) as error:
            self._log_failure(error)
            return False
        self.trouble = ""
        if waits is None:
            self._log_leading()
        return waits is None

    async def acquire(self) -> None:
        """Return when this process leads; retry until then."""
        holder = None
        while True:
            try:
                async with asyncio.timeout(self.timing.deadline):
                    waits = await self._try_once()
            except (KubeError, TimeoutError) as error:
                self._log_failure(error)
                pause = self.timing.retry
            else:
                self.trouble = ""
                if waits is None:
                    self._log_leading()
                    return
                pause = waits.seconds
                if waits.holder != holder:
                    holder = waits.holder
                    log.info("standing by", lease=str(self.key), leader=holder)
            await asyncio.sleep(_jittered(pause))

    async def keep(self) -> None:
        """Renew until cancelled; `LeadershipLost` if no renewal succeeds in time."""
        while True:
            await asyncio.sleep(self.timing.retry)
            try:
                async with asyncio.timeout(self._candidate.remaining(self._clock())):
                    waits = await self._renew()
            except (KubeError, TimeoutError) as error:
                self._log_failure(error)
            else:
                self.trouble = ""
                if waits is not None:
                    self._candidate.resigned()
                    raise LeadershipLost(f"lease {self.key}: taken by {waits.holder}")
            self.check()

    async def release(self) -> None:
        """Release the Lease, so that the next leader need not wait; a failure is only logged."""
        left = self._candidate.remaining(self._clock())
        if not left:
            return
        self._candidate.resigned()
        try:
            async with asyncio.timeout(left):
                await self._hand_back()
        except (KubeError, TimeoutError) as error:
            log.warning("lease not handed back", lease=str(self.key), error=_error_text(error))
        else:
            log.info("lease handed back", lease=str(self.key))

    async def _hand_back(self) -> None:
        # A renewal whose answer we did not get may have been written: read the Lease again.
        lease = self._ours or await self._read()
        if lease and lease["spec"].get("holderIdentity") == self._candidate.identity:
            await self._client.update(LEASES, self._candidate.released(lease, self._wall()))

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(LEASES, self.key.name, self.key.namespace)
        except NotFound:
            return None

    async def _try_once(self) -> Wait | None:
        """Read the Lease and write it if it is free; None if we hold it now."""
        lease = await self._read()
        step = self._candidate.look(lease, now=self._clock(), wall=self._wall())
        if isinstance(step, Wait):
            return step
        sent_at = self._clock()
        try:
            if step.verb == "create":
                self._ours = await self._client.create(LEASES, step.lease)
            else:
                self._ours = await self._client.update(LEASES, step.lease)
        except Conflict:
            return Wait(self.timing.retry, "another replica")
        self._candidate.won(sent_at=sent_at)
        return None

    async def _renew(self) -> Wait | None:
        """Write our Lease again without reading it first; None if we still hold it."""
        if self._ours is None:
            return await self._try_once()
        step = self._candidate.look(self._ours, now=self._clock(), wall=self._wall())
        if isinstance(step, Wait):
            return step
        sent_at = self._clock()
        # Until the answer arrives we do not know the Lease, whether or not the request succeeds.
        self._ours = None
        try:
            self._ours = await self._client.update(LEASES, step.lease)
        except (Conflict, NotFound):
            return await self._try_once()
        self._candidate.won(sent_at=sent_at)
        return None

    def _log_leading(self) -> None:
        log.info("leading", lease=str(self.key), identity=self._candidate.identity)

    def _log_failure(self, error: Exception) -> None:
        text = _error_text(error)
        if text != self.trouble:
            log.warning("lease request failed", lease=str(self.key), error=text)
        self.trouble = text


def _error_text(error: Exception) -> str:
    return str(error) or "no answer in time"


def _jittered(seconds: float) -> float:
    """The time plus up to 20 %, so that candidates do not send their requests at the same time."""
    return seconds * (1 + 0.2 * random.random())  # noqa: S311 - not a secret
