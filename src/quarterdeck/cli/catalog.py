"""`quarterdeck catalog`: make a catalog from bundles, and check one, without a cluster."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import CommandFailed, Output, output_option, show, table

if TYPE_CHECKING:
    from quarterdeck.operators.subscriptions.catalog.model import CatalogFinding, LoadedCatalog


@click.group(cls=CommandGroup)
def catalog() -> None:
    """Make and check catalogs of operators, without a cluster."""


@catalog.command()
@click.argument(
    "directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--to",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory of the catalog; it must be empty or new.",
)
@output_option
def build(directories: tuple[Path, ...], to: Path, output: Output) -> None:
    """Make a catalog from bundle directories.

    DIR is a bundle, with `manifests` and `metadata`, or contains bundles. The output lists each
    bundle: whether it can be installed here, and which old CustomResourceDefinitions are converted.
    The exit code is 1 if the catalog has errors.
    """
    from quarterdeck.operators.subscriptions.catalog.bundles import (
        bundle_directories,
        catalog_entries,
        read_bundle,
    )
    from quarterdeck.operators.subscriptions.catalog.load import load
    from quarterdeck.operators.subscriptions.catalog.model import CatalogFinding

    if to.exists() and any(to.iterdir()):
        raise CommandFailed(f"{to} is not empty; name a new directory")
    read = [read_bundle(directory) for directory in bundle_directories(directories)]
    if refused := [one for one in read if isinstance(one, CatalogFinding)]:
        raise CommandFailed(str(refused[0]))
    entries = catalog_entries([one for one in read if not isinstance(one, CatalogFinding)])
    texts = {
        name: "".join(json.dumps(entry, indent=1) + "\n" for entry in found)
        for name, found in entries.items()
    }
    loaded = load(texts.items())
    for name, text in texts.items():
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    _show(loaded, output)


@catalog.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@output_option
def lint(directory: Path, output: Output) -> None:
    """Check the catalog in DIR.

    The exit code is 1 if the catalog has errors: the operator refuses such a catalog.
    """
    from quarterdeck.operators.subscriptions.catalog.files import directory_files
    from quarterdeck.operators.subscriptions.catalog.load import load

    _show(load(directory_files(directory)), output)


def _show(loaded: "LoadedCatalog", output: Output) -> None:
    from quarterdeck.operators.subscriptions.catalog.installable import (
        NotInstallable,
        installable,
    )
    from quarterdeck.operators.subscriptions.catalog.model import describe

    bundles = []
    for package in loaded.catalog.packages.values():
        for bundle in sorted(package.bundles.values(), key=lambda one: one.version):
            found = installable(bundle)
            refused = isinstance(found, NotInstallable)
            note = found.why if isinstance(found, NotInstallable) else _converted(found.conversions)
            bundles.append(
                {
                    "package": package.name,
                    "bundle": bundle.name,
                    "version": describe(bundle.version),
                    "installable": not refused,
                    "note": note,
                }
            )
    findings = [_finding(finding) for finding in loaded.findings]

    def as_text() -> str:
        rows = [
            (
                str(one["package"]),
                str(one["bundle"]),
                "yes" if one["installable"] else "no",
                "converted" if one["installable"] and one["note"] else "",
            )
            for one in bundles
        ]
        lines = [table(("PACKAGE", "BUNDLE", "INSTALLABLE", "DEFINITIONS"), rows)] if rows else []
        lines += [f"{one['bundle']}: {one['note']}" for one in bundles if one["note"]]
        lines += [f"{one['severity']}: {one['text']}" for one in findings]
        return "\n".join(lines) or "the catalog is empty"

    show({"bundles": bundles, "findings": findings}, output, as_text)
    sys.exit(1 if loaded.errors else 0)


def _converted(conversions: tuple[str, ...]) -> str:
    return f"converted: {'; '.join(conversions)}" if conversions else ""


def _finding(finding: "CatalogFinding") -> dict[str, str]:
    return {
        "severity": "error" if finding.error else "warning",
        "file": finding.file,
        "entry": finding.entry,
        "text": str(finding),
    }
