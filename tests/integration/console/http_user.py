"""A person with a browser that has no JavaScript and no manners: sends what a test says."""

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import unescape
from http.cookies import SimpleCookie
from typing import NamedTuple
from urllib.parse import urlencode

from tests.console_server import ConsoleServer

FORM = "application/x-www-form-urlencoded"


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    def hidden(self, name: str) -> str:
        """The value of a hidden field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        return unescape(found[1]) if found else ""


class HttpUser:
    """One cookie jar."""

    def __init__(self, server: ConsoleServer, host: str = "", **headers: str) -> None:
        self.server = server
        self.host = host or f"localhost:{server.port}"
        self.headers = headers
        self.cookies: dict[str, str] = {}
        self.set_cookies: list[str] = []

    def send(
        self, method: str, path: str, body: bytes = b"", content_type: str = FORM, **headers: str
    ) -> Answer:
        """Send a request, and keep the cookies of its answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        sent = {"Host": self.host, **self.headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if method == "POST":
            sent["Content-Type"] = content_type
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body if method == "POST" else None, sent)
        got = connection.getresponse()
        answer = Answer(got.status, got.headers, got.read().decode(errors="replace"))
        connection.close()
        for header in answer.headers.get_all("Set-Cookie") or ():
            self.set_cookies.append(header)
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        """Get a page."""
        return self.send("GET", path, b"", FORM, **headers)

    def post(self, path: str, form: dict[str, str], **headers: str) -> Answer:
        """Send a form."""
        return self.send("POST", path, urlencode(form).encode(), FORM, **headers)

    def log_in(self, token: str, target: str = "/") -> Answer:
        """Log in with a token."""
        secret = self.get("/login").hidden("secret")
        return self.post("/login", {"secret": secret, "token": token, "next": target})

    def csrf(self) -> str:
        """The CSRF token of the session."""
        return self.get("/log-level").hidden("csrf")


@contextmanager
def events(user: HttpUser, path: str) -> Iterator[http.client.HTTPResponse]:
    """An open stream of events."""
    connection = http.client.HTTPConnection("127.0.0.1", user.server.port, timeout=30)
    cookie = "; ".join(f"{name}={value}" for name, value in user.cookies.items())
    connection.request("GET", path, headers={"Cookie": cookie, "Host": user.host})
    with closing(connection), connection.getresponse() as stream:
        yield stream


def next_update(stream: http.client.HTTPResponse) -> list[dict[str, str]]:
    """The fragments of the next update."""
    while line := stream.readline().decode():
        if line.startswith("data: "):
            found: list[dict[str, str]] = json.loads(line.removeprefix("data: "))
            return found
    raise AssertionError("the stream ended")
