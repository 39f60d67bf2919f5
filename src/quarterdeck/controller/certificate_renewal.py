"""Renews the client certificate by which a process signs in, before it ends.

For a process that has no ServiceAccount: a static pod. When half of the certificate's lifetime is
over, the process asks for the next one with the present one, by a CertificateSigningRequest. Its
private key is made here, and stays in a file that only the process can read. Somebody else approves
the request: the certificate approver, or a person.

The certificate and its key are in one file, which is replaced in one step; `kube.auth` loads it
again before the next request. `kube.client_certificate` decides which answer is a good one. A
request that was refused is not repeated for a twentieth of the lifetime, whatever restarts.
"""

import asyncio
import random
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, Gauge

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.backoff import Backoff, Retries
from quarterdeck.controller.manager import Manager
from quarterdeck.kube import AlreadyExists, Connection, KubeError, NotFound
from quarterdeck.kube.auth import CertificateFiles
from quarterdeck.kube.client_certificate import (
    SIGNING_REQUESTS,
    ClientCertificate,
    RequestState,
    answer_to,
    new_key,
    public_key,
    read_pair,
    request_name,
    request_object,
    signing_request,
)
from quarterdeck.kube.connection import certificates_in
from quarterdeck.kube.errors import KubeconfigError
from quarterdeck.log import get_logger
from quarterdeck.private_file import write_private

log = get_logger("controller.certificate")

LOOK_PERIOD = 5.0
"""Seconds between two looks at the file while something is wrong: a person may replace it."""
POLL_LIMIT = 60.0
"""The most seconds between two looks at a request."""
QUIET_PERIOD = 3600.0
"""The most seconds between two looks otherwise: clocks may jump."""
SHORTEST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(days=1)
PAUSES = 20
"""How many requests a lifetime has room for if each is refused."""
REMEDY = "issue a certificate by hand, as docs/install.md says"


class CertificateState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the certificate now."""

    own: ClientCertificate | None = None
    trouble: str = ""
    """What is in the way, and what to do."""


def certificate_file(connection: Connection) -> Path:
    """The one file with the certificate and the key; `KubeconfigError` if there is none."""
    credentials = connection.credentials
    if isinstance(credentials, CertificateFiles) and (path := credentials.single_file):
        return path
    raise KubeconfigError(
        "--renew-certificate: client-certificate and client-key of the kubeconfig have to name one "
        "file, which has both"
    )


def pause_after_refusal(own: ClientCertificate) -> timedelta:
    """How long to wait after a request that was refused."""
    return max(SHORTEST_PAUSE, min(LONGEST_PAUSE, own.lifetime / PAUSES))


def not_ready(standing: CertificateState, now: datetime) -> str:
    """Why the process does not count as ready; empty while its certificate lasts for a while."""
    own = standing.own
    if own is None or now >= own.ends - own.lifetime / 10:
        return standing.trouble
    return ""


def is_late(own: ClientCertificate, now: datetime) -> bool:
    """Whether a third of the time for the renewal is over; the alert uses the same limit."""
    return now >= own.renewal + (own.ends - own.renewal) / 3


class CertificateRenewal:
    """Keeps the client certificate of one process valid."""

    def __init__(self, manager: Manager, file: Path, lifetime: timedelta) -> None:
        self._manager = manager
        self._file = file
        self._pending = file.with_name(f"{file.name}.pending")
        self._lifetime = lifetime
        self._client = manager.replica_client
        self._standing = CertificateState()
        self._polls = Retries(Backoff(base=1.0, limit=POLL_LIMIT, jitter=0.5))
        self._refused_until: float | None = None
        """Until when no request is made after one that was refused."""
        self._gauges = _Gauges(manager.registry)
        manager.add_task("client certificate", self.run, always=True)

    @property
    def trouble(self) -> str:
        """Why the process is not ready, in one line; empty while its certificate is no reason."""
        return not_ready(self._standing, self._manager.now())

    async def run(self) -> None:
        """Look at the certificate, and renew it in time, until cancelled."""
        while True:
            wait = await self.look()
            await asyncio.sleep(wait)

    async def look(self) -> float:
        """Do what is due now; return the seconds until the next look."""
        try:
            own = read_pair(self._file.read_bytes())
        except (OSError, ValueError) as error:
            # A restart would fail.
            self._standing = CertificateState(trouble=self._standing.trouble)
            self._tell(f"client certificate {self._file}: {_short(error)}; {REMEDY}")
            return LOOK_PERIOD
        self._gauges.show(own)
        now = self._manager.now()
        self._standing = msgspec.structs.replace(self._standing, own=own)
        if now >= own.ends:
            self._tell(f"the client certificate ended at {format_time(own.ends)}; {REMEDY}")
            return LOOK_PERIOD
        if own.groups:
            groups, ends = ", ".join(own.groups), format_time(own.ends)
            self._tell(
                f"the client certificate has groups ({groups}), so it is not renewed and ends at"
                f" {ends}; {REMEDY}"
            )
            return LOOK_PERIOD
        if now < own.renewal:
            self._standing = CertificateState(own=own)
            self._refused_until = None
            left = (own.renewal - now).total_seconds()
            return min(QUIET_PERIOD, left + random.uniform(0, 1))  # noqa: S311 - no secret
        try:
            return await self._renew(own)
        except KubeError as error:
            self._tell(f"cannot ask for the next client certificate: {error}")
        except (OSError, ValueError) as error:
            self._tell(f"cannot keep the next client certificate: {_short(error)}")
        return max(1.0, self._polls.next())

    async def _renew(self, own: ClientCertificate) -> float:
        """Ask for the next certificate, or see how our request stands."""
        if self._refused_until is not None:
            left = self._refused_until - self._manager.clock()
            if left > 0:
                return min(left, LOOK_PERIOD)
            # Forgotten only now: after a restart the same request is found refused, not a new one.
            self._pending.unlink(missing_ok=True)
            self._refused_until = None
        key = self._next_key(own)
        name = request_name(self._manager.field_manager, key)
        found = await self._request(name, key, own)
        answer = answer_to(found, key, own, self._manager.now())
        match answer.state:
            case "issued":
                self._take(found, answer.certificate, key)
                return 1.0
            case "refused":
                pause = pause_after_refusal(own).total_seconds()
                self._refused_until = self._manager.clock() + pause
                why = f"{answer.why}; find out why. The next request is in {pause:.0f} s at most"
                self._tell(f"{why}, and this certificate ends at {format_time(own.ends)}")
                self._warn(found, answer)
                return min(pause, LOOK_PERIOD)
            case "waiting":
                late = is_late(own, self._manager.now())
                why = f"{answer.why}. The certificate in use ends at {format_time(own.ends)}"
                self._tell(why, usual=not late)
                if late:
                    self._warn(found, answer)
                return max(1.0, self._polls.next())

    async def _request(self, name: str, key: bytes, own: ClientCertificate) -> Object:
        """Our request on the server; it is made if it is not there, or no longer."""
        try:
            return await self._client.get(SIGNING_REQUESTS, name)
        except NotFound:
            wanted = request_object(name, signing_request(key, own.user), self._lifetime)
        try:
            made = await self._client.create(SIGNING_REQUESTS, wanted)
        except AlreadyExists:
            return await self._client.get(SIGNING_REQUESTS, name)
        log.info("new client certificate requested", request=name, ends=format_time(own.ends))
        return made

    def _next_key(self, own: ClientCertificate) -> bytes:
        """The private key of the request under way; a new one if there is none."""
        try:
            key = self._pending.read_bytes()
            # A process that ended right after a renewal has left the key that is in use now.
            if public_key(key) != own.public_key:
                return key
        except (FileNotFoundError, ValueError):
            pass
        key = new_key()
        write_private(self._pending, key, durable=True)
        return key

    def _take(self, request: Object, certificate: bytes, key: bytes) -> None:
        """Use the new certificate from now on."""
        # Only certificates, whatever else is beside them.
        pair = certificates_in(certificate.decode()).encode() + key
        own = read_pair(pair)
        write_private(self._file, pair, durable=True)
        self._pending.unlink(missing_ok=True)
        self._polls.reset()
        self._standing = CertificateState(own=own)
        note = f"The new client certificate of {own.user} ends at {format_time(own.ends)}."
        self._manager.events.event(
            request, "Normal", "CertificateRenewed", note, action="Renew", once="renewed"
        )
        log.info("client certificate renewed", ends=format_time(own.ends))

    def _tell(self, trouble: str, *, usual: bool = False) -> None:
        """Log what is in the way if that is new; `/readyz` has it when the end is near."""
        if trouble != self._standing.trouble:
            say = log.info if usual else log.warning
            say("client certificate is not renewed yet", why=trouble)
        self._standing = msgspec.structs.replace(self._standing, trouble=trouble)

    def _warn(self, request: Object, answer: RequestState) -> None:
        """Create an event about the request, once for each state of it."""
        note = self._standing.trouble
        self._manager.events.event(
            request, "Warning", "CertificateNotRenewed", note, action="Renew", once=answer.state
        )


class _Gauges:
    """The certificate's times as metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ends = Gauge(
            "client_certificate_expiration_timestamp_seconds",
            "When the client certificate of this process ends.",
            registry=registry,
        )
        self._renewal = Gauge(
            "client_certificate_renewal_timestamp_seconds",
            "From when on this process asks for the next client certificate.",
            registry=registry,
        )

    def show(self, own: ClientCertificate) -> None:
        """Set the metrics."""
        self._ends.set(own.ends.timestamp())
        self._renewal.set(own.renewal.timestamp())


def _short(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
