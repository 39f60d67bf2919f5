"""A small HTTP server for tests of the router: it says who it is.

`python -m tests.http_backend NAME ADDRESS PORT` runs one until it is killed.
"""

import contextlib
import http.server
import socket
import sys
import threading
from collections.abc import Iterator


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_args: object) -> None:
        """HAProxy closes idle connections as it likes."""


@contextlib.contextmanager
def http_backend(name: str, address: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A server that answers every request with its name; its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = f"{name} {self.path}\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """The test asserts on HAProxy's log, not on this one."""

    server = _Server((address, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


if __name__ == "__main__":
    with http_backend(sys.argv[1], sys.argv[2], int(sys.argv[3])):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        threading.Event().wait()
