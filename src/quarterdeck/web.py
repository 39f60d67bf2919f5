"""HTTP requests to servers outside of the cluster: registries of images, update services.

They are the opposite of the API server: not trusted, and often far away. So each request has limits
of time and size, TLS is verified, a redirect is followed without the credentials of the host before
it, and an answer is never decompressed by the client. The proxy is that of the environment
(`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`). Nothing is retried here, and no digest is known.
"""

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies

import quarterdeck
from quarterdeck.proxies import is_exempt, unusable_proxy
from quarterdeck.terminal import visible

if TYPE_CHECKING:
    import aiohttp

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 30.0
"""Seconds in which the next bytes of an answer have to arrive."""
MAX_REDIRECTS = 5
CHUNK = 1 << 16
BUSY = frozenset({429, 503})
"""The statuses of a server that asks to come back later."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class WebError(Exception):
    """No answer that can be used; `remedy` says what to do.

    The message may quote the server: an address of its redirect may have bytes that are no text,
    which no status could hold.
    """

    def __init__(self, message: str, remedy: str) -> None:
        self.message = visible(message)
        super().__init__(self.message)
        self.remedy = remedy


class TooLarge(WebError):  # noqa: N818 - a property of the answer
    """The answer is larger than its limit."""


class Answer:
    """The answer to one request; its body can be read once."""

    def __init__(self, response: "aiohttp.ClientResponse") -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.url = str(response.url)
        """The address that answered, after redirects."""

    def every(self, header: str) -> Sequence[str]:
        """The values of a header that may be there more than once."""
        return self._response.headers.getall(header, [])

    async def read(self, limit: int) -> bytes:
        """The whole body; TooLarge if it has more bytes than that."""
        data = bytearray()
        async for chunk in self.chunks(limit):
            data += chunk
        return bytes(data)

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """The body in pieces; TooLarge once it has more bytes than that."""
        length = self._response.content_length
        if length is not None and length > limit:
            raise _too_large(self.url, limit)
        count = 0
        while chunk := await self._next():
            count += len(chunk)
            if count > limit:
                raise _too_large(self.url, limit)
            yield chunk

    async def _next(self) -> bytes:
        import aiohttp

        try:
            return await self._response.content.read(CHUNK)
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(self.url, error) from error


class Web:
    """Sends requests; a context manager that holds the connections."""

    def __init__(
        self,
        *,
        ca_file: str = "",
        connect_timeout: float = CONNECT_TIMEOUT,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        self._ca_file = ca_file
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Web":
        import aiohttp  # takes a tenth of a second, which most commands need not pay

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=8, ssl=_tls(self._ca_file)),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self._connect_timeout, sock_read=self._read_timeout
            ),
            auto_decompress=False,
            headers={
                "User-Agent": f"quarterdeck/{quarterdeck.__version__}",
                "Accept-Encoding": "identity",
            },
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        authorization: str = "",
        data: Any = None,
    ) -> AsyncIterator[Answer]:
        """The answer, whatever its status; WebError if there is none.

        A redirect of a GET or HEAD is followed. The authorization goes only to the host that is
        asked first.
        """
        for _ in range(MAX_REDIRECTS + 1):
            sent = dict(headers or {})
            if authorization:
                sent["Authorization"] = authorization
            async with _ended(await self._send(method, url, sent, data)) as response:
                to = response.headers.get("Location", "")
                if response.status not in _REDIRECTS or not to or method not in ("GET", "HEAD"):
                    yield Answer(response)
                    return
            target = redirected(url, to)
            if origin(target) != origin(url):
                authorization = ""
            url = target
        raise WebError(
            f"{shown(url)} redirects more than {MAX_REDIRECTS} times",
            "look at the server, or name another",
        )

    async def _send(
        self, method: str, url: str, headers: dict[str, str], data: Any
    ) -> "aiohttp.ClientResponse":
        import aiohttp
        from yarl import URL

        if self._session is None:
            raise RuntimeError("use Web as a context manager")
        try:
            return await self._session.request(
                method,
                URL(url, encoded=True),  # the signature of a redirect covers its exact text
                headers=headers,
                data=data,
                allow_redirects=False,
                proxy=proxy_for(url),
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _unreachable(url, error) from error


@asynccontextmanager
async def _ended(response: "aiohttp.ClientResponse") -> AsyncIterator["aiohttp.ClientResponse"]:
    """The answer; if it is not read to its end, its connection ends at once.

    An orderly end of TLS would wait for the server, which may be the reason not to read on.
    """
    try:
        async with response:
            try:
                yield response
            finally:
                held = response.connection
                if held is not None and held.transport is not None:
                    held.transport.abort()
    finally:
        response.close()


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what credentials belong to."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), port


def redirected(url: str, to: str) -> str:
    """The address of a redirect; WebError if it is none, or leaves TLS or HTTP."""
    target = joined(url, to)
    scheme = urlsplit(target).scheme
    if scheme == "https" or (scheme == "http" and urlsplit(url).scheme == "http"):
        return target
    raise WebError(
        f"{shown(url)} redirects to {shown(target)}, which is not protected by TLS",
        "let the server redirect to an https address",
    )


def is_address(url: str) -> bool:
    """Whether a text can be asked as an address."""
    try:
        return bool(origin(url)[1])
    except ValueError:
        return False


def joined(url: str, to: str) -> str:
    """An address that a server names, relative to its own; WebError if it is none."""
    try:
        target = urljoin(url, to)
        origin(target)
    except ValueError as error:
        raise WebError(
            f"{shown(url)} redirects to something that is no address",
            "look at the server, or name another",
        ) from error
    return target


def retry_after(headers: Mapping[str, str]) -> float:
    """The seconds that a busy server asks for; 0 if it asks for none that we know.

    A server that names a moment also says what time it is, so its clock may be wrong.
    """
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    moment, now = _moment(text), _moment(headers.get("Date", ""))
    return max(0.0, moment - now) if moment is not None and now is not None else 0.0


def _moment(text: str) -> float | None:
    """The seconds since 1970 of a date in a header; None if it is none."""
    try:
        return parsedate_to_datetime(text[:64]).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address; None for a direct connection.

    WebError if it is one that we cannot speak to.
    """
    parts = urlsplit(url)
    known = getproxies()
    if not parts.hostname or is_exempt(url, known.get("no", "")):
        return None
    proxy = known.get(parts.scheme)
    if not proxy:
        return None
    proxy = proxy if "//" in proxy else f"http://{proxy}"
    if why := unusable_proxy(proxy):
        name = f"{parts.scheme.upper()}_PROXY"
        raise WebError(
            f"{name}: {why}", f"name an http or https proxy, or exempt {parts.hostname} in NO_PROXY"
        )
    return proxy


def shown(url: str) -> str:
    """An address for messages: without query and credentials, which may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "something that is no address"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"[:300]


def _tls(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file:
        try:
            context.load_verify_locations(cafile=str(Path(ca_file)))
        except (OSError, ssl.SSLError) as error:
            raise WebError(
                f"the certificates in {ca_file} cannot be read: {error.strerror or error}",
                "name a file with certificates in PEM",
            ) from error
    return context


def _unreachable(url: str, error: Exception) -> WebError:
    import aiohttp

    where = shown(url)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return WebError(
            f"{where}: the certificate is not trusted: {error.certificate_error}",
            "add its authority to the CA bundle",
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return WebError(
            f"{where}: the proxy refuses the connection: {_cause(error)[:300]}",
            "check the proxy and its password, in HTTPS_PROXY or HTTP_PROXY",
        )
    if isinstance(error, aiohttp.ClientResponseError):
        return WebError(
            f"{where}: the answer is not HTTP: {error.message.partition(chr(10))[0][:300]}",
            "check the address, and what answers there",
        )
    if isinstance(error, TimeoutError):
        return WebError(f"{where}: no answer in time", "check that it is up, and the way to it")
    if isinstance(error, aiohttp.ClientPayloadError):
        return WebError(f"{where}: the answer ended too early", "check the server and the network")
    why = _cause(error)
    return WebError(
        f"{where}: no connection: {why[:300]}", "check the address, the network and the proxy"
    )


def _cause(error: Exception) -> str:
    """What an error says, without addresses: those of proxies and redirects have secrets."""
    import aiohttp

    if isinstance(error, aiohttp.ClientResponseError):
        return f"status {error.status} {error.message}".strip()
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return type(error).__name__
    return str(error) or type(error).__name__


def _too_large(url: str, limit: int) -> TooLarge:
    return TooLarge(
        f"{shown(url)}: the answer is larger than {limit} bytes", "look at what is stored there"
    )
