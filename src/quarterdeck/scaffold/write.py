"""Writes a new project into a directory, all of it or nothing."""

import shutil
import tempfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from quarterdeck.scaffold.names import Names

TEMPLATE = ".jinja"


class NotEmptyError(OSError):
    """The directory has files already."""


def project_files(names: Names, quarterdeck: str) -> dict[str, str]:
    """The text of each file by its path in the project.

    `quarterdeck` is what pip is given to install Quarterdeck on this machine.
    """
    root = files("quarterdeck.scaffold") / "operator"
    # What is written is source text: nothing in it is HTML.
    environment = Environment(  # noqa: S701
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    found = {}
    for path, text in _templates(root, ""):
        place = path.removesuffix(TEMPLATE).replace("src/package/", f"src/{names.package}/")
        found[place] = environment.from_string(text).render(n=names, quarterdeck=quarterdeck)
    return found


def write_project(directory: Path, project: dict[str, str]) -> None:
    """Write the files; the directory must be missing or empty."""
    if directory.exists() and any(directory.iterdir()):
        raise NotEmptyError(
            f"the directory {directory} is not empty; name another one with --directory"
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Made aside and moved: an interrupted one leaves no half of a project.
    aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        aside.chmod(0o755)
        for name, text in project.items():
            place = aside / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        aside.replace(directory)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _templates(directory: Traversable, path: str) -> list[tuple[str, str]]:
    found = []
    for one in sorted(directory.iterdir(), key=lambda each: each.name):
        if one.is_dir():
            found += _templates(one, f"{path}{one.name}/")
        elif one.name.endswith(TEMPLATE):
            found.append((path + one.name, one.read_text()))
    return found
