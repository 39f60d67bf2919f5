"""What all pages share while the console runs."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from quarterdeck.console.account import ConsoleAccount, who_is
from quarterdeck.console.limits import LogInLimit
from quarterdeck.console.render import environment
from quarterdeck.console.sessions import OneTimeLinks, Session, Sessions
from quarterdeck.console.settings import Settings
from quarterdeck.console.sources import Sources
from quarterdeck.kube import Client, Connection, StaticHeader
from quarterdeck.kube.connection import without_identity

if TYPE_CHECKING:
    from quarterdeck.console.feed import Feed

LINK_ACCOUNT = "link"
MAX_COMPARED = 2
"""How many catalogs are read at a time."""


class Console:
    """The running console."""

    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        sources: Sources,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`connection` names the API server; only one-time links use its credentials."""
        self.settings = settings
        self.sources = sources
        self.clock = clock
        self.connection = connection
        self._strangers = without_identity(connection)
        self.sessions = Sessions()
        self.links = OneTimeLinks()
        self.limit = LogInLimit()
        self.templates = environment()
        self.comparing = asyncio.Semaphore(MAX_COMPARED)
        """Held while a catalog is read for the next version of a Subscription."""
        self.accounts: dict[str, ConsoleAccount] = {}

    async def account_of_token(self, token: str) -> ConsoleAccount:
        """The account of a token; raises `Unauthorized` if the API server does not accept it."""
        credentials = StaticHeader.bearer(token)
        key = "token:" + hashlib.sha256(token.strip().encode()).hexdigest()
        connection = without_identity(self._strangers, credentials)
        return await self._account(key, connection)

    async def account_of_link(self) -> ConsoleAccount:
        """The account of one-time links: whoever started the console."""
        return await self._account(LINK_ACCOUNT, self.connection)

    async def _account(self, key: str, connection: Connection) -> ConsoleAccount:
        # Asked at each log-in: a token that is known here may have been revoked.
        client = Client(connection)
        try:
            user = await who_is(client)
        except BaseException:
            await client.close()
            raise
        known = self.accounts.get(key)
        if known is not None and not known.ended.is_set():
            await client.close()
            return known
        account = self.accounts[key] = ConsoleAccount(client, user)
        return account

    async def close_unused(self) -> None:
        """Close the accounts without a session, and stop the caches that no page uses."""
        self.sessions.end_expired(self.clock())
        used = {id(session.account) for session in self.sessions}
        for key, account in list(self.accounts.items()):
            if id(account) not in used or account.ended.is_set():
                del self.accounts[key]
                await account.close()
            else:
                account.end_unused()

    async def close(self) -> None:
        """End all sessions and close all accounts."""
        self.end_sessions()
        for account in self.accounts.values():
            await account.close()
        self.accounts.clear()

    def end_sessions(self) -> None:
        """End all sessions, and the live pages of their browsers."""
        for session in list(self.sessions):
            self.sessions.end(session)

    def end_account(self, account: ConsoleAccount) -> None:
        """End all sessions of an account whose credentials are no longer accepted."""
        account.ended.set()
        for session in [one for one in self.sessions if one.account is account]:
            self.sessions.end(session)


CONSOLE: web.AppKey[Console] = web.AppKey("console", Console)
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)


def feeds_of(account: ConsoleAccount) -> "dict[str, Feed]":
    """The live pages of an account, by path."""
    feeds: dict[str, Any] = account.feeds
    return feeds
