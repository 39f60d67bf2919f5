"""The commands of docs/access-logs.md, in their order, on the cluster that the document starts.

Also the commands that `local up` prints about the IngressController of a local cluster.
"""

import re
import shlex
from pathlib import Path

import pytest
from tests.documents import Done, Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

from quarterdeck.testing.waiting import until

TEXT = (DOCS / "access-logs.md").read_text()
FILES = dict(re.findall(r"^```yaml (\S+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))

pytestmark = needs_bubblewrap


def printed_commands(output: str) -> list[str]:
    """The commands that `local up` prints about the ingress operator, as one would paste them."""
    (about,) = (part for part in output.split("\n\n") if part.startswith("The ingress operator"))
    joined = about.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.startswith("  ")]


def check_printed(shell: Shell, output: str) -> str:
    """Run the two commands as they were printed; the port of the first is returned."""
    *_, curl, logs = printed_commands(output)
    assert curl.startswith("curl ")
    answer = shell.succeed(curl)
    assert "503 Service Unavailable" in answer.stdout
    shown(shell, logs, "GET /hello")
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/", curl)
    return str(port)


def shown(shell: Shell, command: str, words: str) -> Done:
    """What a command shows as soon as these words are in it: a line takes a moment to arrive."""
    return until(lambda: shell(command), lambda it: words in it.stdout, words)


LINES = {
    "--container logs": "GET /hello",
    "ingress logs shop": "GET /hello",
    "logs syslog": '503 "GET /goodbye" reader',
}
"""Words of the line that a command of the document shows."""


@pytest.mark.slow
def test_the_stories_of_the_document_can_be_followed(newcomer: Shell, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    for command, rest in commands(TEXT):
        whole = f"{command}\n{rest}".rstrip()
        wanted = 1 if "bad-format" in command else 0
        words = next((text for part, text in LINES.items() if part in command), "")
        done = shown(newcomer, whole, words) if words else newcomer(whole)
        assert done.returncode == wanted, f"{command}: {done.stdout}{done.stderr}"
        if command.startswith("quarterdeck local up"):
            check_printed(newcomer, done.stdout)
        if "bad-format" in command:
            assert "character 5 ('%zz'): HAProxy: no such format variable 'zz'" in done.stdout
        if "explain shop --file" in command:
            assert "pods are replaced: yes" in done.stdout
        if "logs syslog" in command:
            assert done.stdout.startswith("local2.info router-shop-")


@pytest.mark.soak
def test_two_clusters_have_an_ingress_each_and_keep_their_ports(newcomer: Shell) -> None:
    try:
        first = newcomer.succeed("quarterdeck local up --ingress")
        second = newcomer.succeed("quarterdeck local up --ingress --name beside")
        ports = [check_printed(newcomer, done.stdout) for done in (first, second)]
        assert len(set(ports)) == 2
        newcomer.succeed("quarterdeck local down")
        again = newcomer.succeed("quarterdeck local up --ingress")
        assert check_printed(newcomer, again.stdout) == ports[0]
    finally:
        newcomer("quarterdeck local down --purge --name beside")


def test_the_printed_commands_are_words_of_a_shell() -> None:
    """A quoted header stays one word."""
    text = "The ingress operator. Its log:\n  a\n  curl --header \\\n      'Host: x' y\n"
    assert shlex.split(printed_commands(text)[-1]) == ["curl", "--header", "Host: x", "y"]
