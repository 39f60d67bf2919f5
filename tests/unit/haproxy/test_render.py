"""The configuration's rules: only those that can find a backend, in the order of their right."""

from itertools import product

import pytest

from quarterdeck.haproxy.model import Config
from quarterdeck.haproxy.render import CONFIG_FILE, render

HOST, WILDCARD, EVERY = "shop.example", "*.shop.example", "*"
STEPS = {WILDCARD: "regsub(", EVERY: "str(*)"}


def rules(exact: tuple[str, ...], prefixes: tuple[str, ...]) -> list[str]:
    """The rules of the frontend for HTTP that set the host or the backend."""
    config = Config(
        http_bind=":80",
        https_bind=":443",
        sockets="/run",
        default_certificate="",
        exact_paths=tuple((f"{host}/a", "one") for host in exact),
        path_prefixes=tuple((f"{host}/", "two") for host in prefixes),
    )
    text = render(config, 1)[CONFIG_FILE]
    frontend = text.partition("frontend public\n")[2].partition("frontend ")[0]
    lines = [line.strip() for line in frontend.splitlines()]
    (first,) = (n for n, line in enumerate(lines) if "set-var(txn.host) req.fhdr" in line)
    return [line for line in lines[first + 1 :] if line.startswith("http-request")]


@pytest.mark.parametrize(
    "hosts",
    [
        tuple(host for host, wanted in zip((HOST, WILDCARD, EVERY), some, strict=True) if wanted)
        for some in product((False, True), repeat=3)
    ],
)
@pytest.mark.parametrize("kind", ["exact", "prefix", "both"])
def test_there_are_only_the_rules_that_can_find_a_backend(
    hosts: tuple[str, ...], kind: str
) -> None:
    found = rules(hosts if kind != "prefix" else (), hosts if kind != "exact" else ())
    lookups = [rule for rule in found if "map_" in rule]
    steps = [rule for rule in found if "set-var(txn.host)" in rule]
    has_exact = kind != "prefix" and bool(hosts)
    levels = 1 + len([host for host in hosts if host in STEPS])
    assert len(lookups) == levels * (2 if has_exact else 1)
    assert len(found) == len(lookups) + len(steps)
    wanted = [STEPS[host] for host in hosts if host in STEPS]
    assert all(name in rule for name, rule in zip(wanted, steps, strict=True))
    # What is found first counts: only the first rule has no condition.
    assert ["-m found" in rule for rule in found] == [False] + [True] * (len(found) - 1)
