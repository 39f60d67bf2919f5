"""The options of `quarterdeck run` that belong to one operator each.

An option's parameter name is the field of the operator's settings that it sets; its default
is the field's own, so it has none here. One that a container is given in its environment, as
the release's version is, names the variable here.
"""

from collections.abc import Collection
from typing import Any

import click

from quarterdeck.cli.durations import Duration

OPTIONS: dict[str, tuple[click.Option, ...]] = {
    "cluster-version": (
        click.Option(
            ["--release-version"],
            envvar="RELEASE_VERSION",
            show_envvar=True,
            help="The release that this operator belongs to.  [default: the program's version]",
        ),
        click.Option(
            ["--cluster-profile", "profile"],
            envvar="CLUSTER_PROFILE",
            show_envvar=True,
            help="Which of the payload's manifests are for this cluster."
            "  [default: self-managed-high-availability]",
        ),
        click.Option(
            ["--releases"],
            type=click.Path(),
            envvar="RELEASES",
            show_envvar=True,
            help="A directory with one payload per release; without it, none is applied.",
        ),
    ),
    "staleness": (
        click.Option(
            ["--interval"],
            type=Duration(whole=True),
            help="How long an operator may be silent before it is asked for a sign of life, and "
            "again before its conditions become Unknown.  [default: 10m]",
        ),
        click.Option(
            ["--grace"],
            type=Duration(whole=True, zero=True),
            help="How long nothing is written after the start, or after a sleep of the machine.  "
            "[default: 30s]",
        ),
        click.Option(
            ["--keep-upgradeable-false"],
            is_flag=True,
            help="Leave an Upgradeable=False alone, where Unknown would permit an upgrade.",
        ),
    ),
}
"""By operator."""


def given_options(ctx: click.Context, chosen: Collection[str]) -> dict[str, dict[str, Any]]:
    """What was given on the command line, by operator; for one that does not run, an error."""
    given: dict[str, dict[str, Any]] = {}
    for operator, options in OPTIONS.items():
        for option in options:
            name = option.name or ""
            source = ctx.get_parameter_source(name)
            if source is click.core.ParameterSource.DEFAULT:
                continue
            if operator not in chosen:
                if source is click.core.ParameterSource.ENVIRONMENT:
                    continue
                flag = max(option.opts, key=len)
                raise click.UsageError(f"{flag} is for {operator}: add --operator {operator}")
            given.setdefault(operator, {})[name] = ctx.params[name]
    return given
