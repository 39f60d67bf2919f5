"""The files of a configuration, as text. Pure.

`haproxy.cfg` names the other files relative to its own directory, so a directory can be checked
before it takes the place of the one that HAProxy runs with.
"""

import re
from functools import cache

import jinja2

from quarterdeck.haproxy.access_log_lines import access_log_lines, canary_frontend
from quarterdeck.haproxy.errors import RefusedTextError
from quarterdeck.haproxy.model import Backend, Certificate, Config
from quarterdeck.haproxy.quoting import quoted

CONFIG_FILE = "haproxy.cfg"
CERTIFICATES = "certs"
"""The directory of certificates, below that of haproxy.cfg."""
CANARY_BIND = "canary-in.sock"
"""The socket of the canary's frontend, in the directory of sockets."""

_NAME = re.compile(r"[A-Za-z0-9:._-]{1,512}")
_MAP_KEY = re.compile(r"[!-~]{1,8192}")
"""A line of a map that is longer than HAProxy's buffer of 16 KiB becomes two entries."""
_NAMES_PER_LINE = 100
"""HAProxy refuses a line of a crt-list with more than 2,048 words or 64 KiB."""
_SERVER_NAME = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def render(config: Config, generation: int) -> dict[str, str]:
    """The text of each file by its path; `RefusedTextError` if a value cannot be written.

    Each generation has an admin socket of its own, because workers of several may run.
    """
    log = config.access_log
    canary = canary_frontend(log, f"{config.sockets}/{CANARY_BIND}") if log else ()
    text = _template().render(
        admin_socket=admin_socket(config.sockets, generation),
        log=access_log_lines(log, generation),
        lookups=_lookups(config),
        frontends=(
            ("public", config.http_bind, "http"),
            (
                "public_ssl",
                f"{config.https_bind} ssl crt-list crt-list.txt alpn h2,http/1.1",
                "https",
            ),
        ),
        canary=(canary,) if canary else (),
        backends=[_checked(backend) for backend in config.backends],
    )
    files = {
        CONFIG_FILE: text,
        "exact.map": _map(config.exact_paths),
        "prefix.map": _map(config.path_prefixes),
        "crt-list.txt": _certificate_list(config),
        f"{CERTIFICATES}/default.pem": config.default_certificate,
    }
    for certificate in config.certificates:
        files[f"{CERTIFICATES}/{_word(certificate.name, _NAME)}"] = certificate.pem
    return files


def admin_socket(directory: str, generation: int) -> str:
    """The path of the admin socket of a generation's worker."""
    return f"{directory}/admin-{generation}.sock"


def certificate_path(name: str) -> str:
    """A certificate's path, by which HAProxy knows it."""
    return f"{CERTIFICATES}/{name}"


def _lookups(config: Config) -> list[str]:
    """The rules that find the backend: of the host, then with `*` for one label, then with `*`.

    Each request pays for each rule, so there are only those that can find something.
    """
    keys = [key for key, _ in (*config.exact_paths, *config.path_prefixes)]
    hosts = [""]
    if any(key.startswith("*.") for key in keys):
        hosts.append("var(txn.host),regsub(^[^.]+,*)")
    if any(key.startswith("*/") for key in keys):
        hosts.append("str(*)")
    lookups = ["var(txn.host),concat(,txn.path),map_str(exact.map)"] if config.exact_paths else []
    lookups.append("var(txn.host),concat(,txn.path,/),map_beg(prefix.map)")
    rules = []
    for host in hosts:
        rules += [f"set-var(txn.host) {host}"] if host else []
        rules += [f"set-var(txn.backend) {lookup}" for lookup in lookups]
    not_found = " if !{ var(txn.backend) -m found }"
    return [rules[0], *(rule + not_found for rule in rules[1:])]


def _map(entries: tuple[tuple[str, str], ...]) -> str:
    return "".join(f"{_word(key, _MAP_KEY)} {_word(name, _NAME)}\n" for key, name in entries)


def _certificate_list(config: Config) -> str:
    # The first one is for names that match none.
    lines = [certificate_path("default.pem")]
    default = Certificate("default.pem", config.default_certificate, config.default_names)
    for one in (*([default] if config.default_names else []), *config.certificates):
        path = certificate_path(_word(one.name, _NAME))
        names = [_word(name, _SERVER_NAME) for name in one.server_names]
        lines += [
            " ".join((path, *names[begin : begin + _NAMES_PER_LINE]))
            for begin in range(0, max(1, len(names)), _NAMES_PER_LINE)
        ]
    return "".join(f"{line}\n" for line in lines)


def _checked(backend: Backend) -> Backend:
    _word(backend.name, _NAME)
    return backend


def _word(text: str, pattern: re.Pattern[str]) -> str:
    """The text, if it is one word of the expected characters."""
    if not pattern.fullmatch(text):
        raise RefusedTextError(0, text, f"not of the form {pattern.pattern}")
    return text


@cache
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("quarterdeck.haproxy", "")
    # Not HTML: `quoted` escapes for HAProxy.
    environment = jinja2.Environment(  # noqa: S701
        loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    environment.filters["quoted"] = quoted
    return environment.get_template("haproxy.cfg.j2")
