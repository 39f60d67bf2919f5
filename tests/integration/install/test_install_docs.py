"""The commands of docs/install.md, with a real registry, on a local cluster of their own."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.all_objects import all_objects
from tests.documents import Shell, commands
from tests.installed_release import own_release, push
from tests.integration.pods import needs_bubblewrap
from tests.places import DEPLOY, DOCS
from tests.registry_process import RunningRegistry, running_registry

from quarterdeck.testing.waiting import until

PAGE = (DOCS / "install.md").read_text()
VERSION = "1.0.0"
OF_OTHER_TESTS = ("Plain YAML, Kustomize and Helm", "The staleness checker as a static pod")


def documented(*headings: str, elsewhere: bool = False) -> list[tuple[str, str]]:
    """The commands of sections, or of all others, each with what the page shows after it."""
    sections = re.split(r"^(?=## )", PAGE, flags=re.M)
    named = tuple(f"## {heading}\n" for heading in headings)
    chosen = [one for one in sections if one.startswith(named) is not elsewhere]
    return commands("".join(chosen))


def like(expected: str, seen: str) -> bool:
    """Whether an output is as the page shows it, where `...` stands for anything."""
    parts = [re.escape(part) for part in expected.strip().split("...")]
    pattern = re.sub(r"\d+s(?=\\\s|$)", r"\\S+", r"(?s:.*?)".join(parts), flags=re.M)
    shown = "\n".join(line.rstrip() for line in seen.strip().splitlines())
    return re.fullmatch(re.sub(r"(\\ )+", r" +", pattern), shown) is not None


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RunningRegistry]:
    with running_registry(tmp_path / "registry") as one:
        yield one


def test_every_option_is_explained() -> None:
    from quarterdeck.cli.install import install

    flags = {flag for one in install.params for flag in (*one.opts, *one.secondary_opts)}
    common = {"--kubeconfig", "--context", "--output", "--timeout", "--dry-run"}
    assert [flag for flag in sorted(flags - common) if f"`{flag}" not in PAGE] == []


@pytest.mark.slow
@needs_bubblewrap
def test_installed_and_removed_as_it_is_told(
    newcomer: Shell, real: RunningRegistry, tmp_path: Path
) -> None:
    """Nothing is left: all objects of all kinds are those of before."""
    release = push(real, own_release(tmp_path / "release", VERSION))
    shutil.copy(real.secret, tmp_path / "pull-secret.json")
    shutil.copy(real.tls.ca, tmp_path / "ca.crt")
    (tmp_path / "deploy").symlink_to(DEPLOY)
    begin, *other, end = documented(*OF_OTHER_TESTS, elsewhere=True)
    newcomer.succeed(begin[0])
    kubeconfig = tmp_path / "home/.local/state/quarterdeck/local/kubeconfig"
    before = all_objects(kubeconfig)
    for command, shown in other:
        if command.startswith("export RELEASE="):
            command = f"export RELEASE={release}"
        if command.startswith("kubectl get"):
            done = until(
                lambda: newcomer.succeed(command),  # noqa: B023 - used in this turn only
                lambda it: like(shown, it.stdout),  # noqa: B023
                f"the output of: {command}",
            )
        done = newcomer.succeed(command)
        assert like(shown, done.stdout), f"{command}: {done.stdout}"
        if "--pull-secret" in command:
            _check_standards(newcomer)
    assert all_objects(kubeconfig) == before
    newcomer.succeed(end[0])


def _check_standards(run: Shell) -> None:
    """Operators run in namespaces that enforce `restricted`; none uses a directory of a node."""
    spaces = run.succeed(
        "kubectl get namespaces --selector pod-security.kubernetes.io/enforce=restricted "
        "--output name"
    ).stdout
    for one in ("cluster-version", "ingress-operator", "operator-lifecycle-manager"):
        assert f"namespace/openshift-{one}\n" in spaces
    volumes = run.succeed(
        "kubectl get deployments --all-namespaces --output jsonpath='{..volumes[*].hostPath.path}'"
    )
    assert volumes.stdout == ""
    budgets = run.succeed("kubectl get poddisruptionbudgets --all-namespaces --output name").stdout
    assert "cluster-version-operator" in budgets
