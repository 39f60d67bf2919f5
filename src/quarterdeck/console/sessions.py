"""Sessions and one-time links, in memory: a restart of the console ends them all.

A session belongs to one account. Its id is in a cookie, and its CSRF token in each form. Logging in
always makes a new id, so an id that somebody planted before is worth nothing.
"""

import asyncio
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.console.account import ConsoleAccount

IDLE_LIMIT = 2 * 3600.0
"""Seconds without a request after which a session ends."""
LONGEST = 12 * 3600.0
"""Seconds after which a session ends in any case."""
MAX_SESSIONS = 1000
MAX_SESSIONS_OF_USER = 20
"""So that nobody ends the sessions of others by logging in again and again."""
LINK_LIFETIME = 3600.0


class Session:
    """One browser of one person."""

    def __init__(self, account: "ConsoleAccount", now: float) -> None:
        self.id = secrets.token_urlsafe(32)
        self.csrf = secrets.token_urlsafe(32)
        self.account = account
        self.began = self.seen = now
        self.ended = asyncio.Event()
        self.streams = 0
        """How many live pages are open."""
        self.notice = ""
        """Said once, on the next page."""
        self.notice_is_fault = False

    def say(self, notice: str, *, fault: bool = False) -> None:
        """Show this at the top of the next page."""
        self.notice, self.notice_is_fault = notice, fault

    def take_notice(self) -> tuple[str, bool]:
        """The notice, which is not shown again."""
        notice, self.notice = self.notice, ""
        return notice, self.notice_is_fault

    def expired(self, now: float) -> bool:
        """Whether the session is too old, or unused for too long."""
        return now - self.seen > IDLE_LIMIT or now - self.began > LONGEST


class Sessions:
    """All sessions, by id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Session] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(self._by_id.values())

    def begin(self, account: "ConsoleAccount", now: float) -> Session:
        """A new session with a new id; beyond a limit, the longest unused one ends."""
        own = [one for one in self._by_id.values() if one.account.user == account.user]
        if len(own) >= MAX_SESSIONS_OF_USER:
            self.end(min(own, key=lambda one: one.seen))
        if len(self._by_id) >= MAX_SESSIONS:
            self.end(min(self._by_id.values(), key=lambda one: one.seen))
        session = Session(account, now)
        self._by_id[session.id] = session
        return session

    def find(self, identifier: str, now: float) -> Session | None:
        """The session of that id, unless it has expired."""
        session = self._by_id.get(identifier)
        if session is None:
            return None
        if session.expired(now):
            self.end(session)
            return None
        session.seen = now
        return session

    def end(self, session: Session) -> None:
        """End a session, and the live pages of its browser."""
        self._by_id.pop(session.id, None)
        session.ended.set()

    def end_expired(self, now: float) -> None:
        """End all sessions that have expired."""
        for session in [one for one in self._by_id.values() if one.expired(now)]:
            self.end(session)


class OneTimeLinks:
    """Codes of which each opens one session, for an hour at most."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def make(self, now: float) -> str:
        """A new code."""
        code = secrets.token_urlsafe(24)
        self._until[code] = now + LINK_LIFETIME
        return code

    def valid(self, code: str, now: float) -> bool:
        """Whether the code can still be used."""
        return now < self._until.get(code, 0.0)

    def use(self, code: str, now: float) -> bool:
        """Whether the code was valid; it is not any more."""
        return now < self._until.pop(code, 0.0)
