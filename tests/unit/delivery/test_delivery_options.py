"""The options of `quarterdeck run`, from the types of operators' settings."""

import sys
import types
from datetime import timedelta
from typing import Annotated

import click
import msgspec
import pytest
from click.testing import CliRunner

from quarterdeck.cli.main import cli
from quarterdeck.cli.run_options import given_options, operator_options
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.deliverable import trouble
from quarterdeck.delivery.options import option, options_of
from quarterdeck.delivery.registry import InstalledOperators, installed


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """Whom to greet."""
    every: timedelta = timedelta(seconds=90)
    grace: Annotated[timedelta, option(zero=True)] = timedelta(0)
    count: Annotated[int, msgspec.Meta(ge=1), option(flag="--how-many", env="COUNT")] = 3
    loud: bool = False
    share: float | None = None


class Unusable(msgspec.Struct, frozen=True):
    things: list[str] = []


class TwoTypes(msgspec.Struct, frozen=True):
    size: int | str = 1


class Switched(msgspec.Struct, frozen=True):
    bright: bool = True
    """Whether it shines."""
    loud: bool = False


def declared(settings: str, name: str = "greeter") -> Declaration:
    return Declaration(
        name=name, title="It", setup="nowhere:setup", settings=settings, namespace="default"
    )


@pytest.fixture
def greeter(monkeypatch: pytest.MonkeyPatch) -> Declaration:
    """An operator with the settings above, under a name by which they can be imported."""
    module = types.ModuleType("greeter_settings")
    module.__dict__.update(
        Settings=Settings, Unusable=Unusable, TwoTypes=TwoTypes, Switched=Switched
    )
    monkeypatch.setitem(sys.modules, "greeter_settings", module)
    return declared("greeter_settings:Settings")


def test_a_fields_name_type_default_and_docstring_make_its_option(greeter: Declaration) -> None:
    found = {one.flag: one for one in options_of(greeter)}
    assert list(found) == ["--name", "--every", "--grace", "--how-many", "--loud", "--share"]
    assert found["--name"].help == "Whom to greet."
    assert found["--name"].required
    assert (found["--every"].type, found["--every"].default) == (timedelta, timedelta(seconds=90))
    assert found["--grace"].zero
    assert (found["--how-many"].env, found["--how-many"].field) == ("COUNT", "count")
    assert found["--share"].type is float


def test_a_flag_that_is_taken_gets_the_operators_name(greeter: Declaration) -> None:
    ours = installed()
    other = declared(ours.operators["staleness"].settings, name="mine")
    registry = InstalledOperators(operators={**ours.operators, "mine": other}, distributions={})
    flags = [(one.operator, one.flag) for one in operator_options(registry, ["--grace"])]
    assert ("staleness", "--interval") in flags
    assert ("mine", "--mine-interval") in flags
    assert ("staleness", "--staleness-grace") in flags, "the command's own flags come first"


def test_settings_that_cannot_be_read_harm_no_other_operator(greeter: Declaration) -> None:
    bad = declared("greeter_settings:Unusable")
    with pytest.raises(TypeError, match="use str, int, float, bool or timedelta"):
        options_of(bad)
    ours = installed()
    registry = InstalledOperators(operators={"greeter": bad, **ours.operators}, distributions={})
    assert operator_options(registry) == operator_options(ours)


def test_a_setting_of_a_type_without_an_option_is_named(greeter: Declaration) -> None:
    with pytest.raises(TypeError, match="the setting things cannot be a list"):
        options_of(declared("greeter_settings:Unusable"))
    with pytest.raises(TypeError, match=r"the setting size cannot be a int \| str"):
        options_of(declared("greeter_settings:TwoTypes"))


def test_settings_that_cannot_be_read_keep_their_operator_from_being_set_up(
    greeter: Declaration,
) -> None:
    """With its defaults it would run, and nobody would find the options that are missing."""
    assert "the setting things cannot be a list" in trouble(
        msgspec.structs.replace(
            declared("greeter_settings:Unusable"), setup="quarterdeck.operators.sample:OPERATOR"
        )
    )


def test_an_unknown_option_names_the_operator_whose_options_are_missing(
    greeter: Declaration, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = InstalledOperators(
        operators={"greeter": declared("greeter_settings:Unusable")}, distributions={}
    )
    monkeypatch.setattr("quarterdeck.cli.run_options.installed", lambda: registry)
    said = CliRunner().invoke(cli, ["run", "--things", "a"]).output
    assert "No such option '--things'" in said
    assert "The operator greeter has no options here" in said
    assert "use str, int, float, bool or timedelta" in said


def test_a_switch_that_is_on_by_itself_can_be_switched_off(
    greeter: Declaration, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = InstalledOperators(
        operators={"greeter": declared("greeter_settings:Switched")}, distributions={}
    )
    monkeypatch.setattr("quarterdeck.cli.run_options.installed", lambda: registry)
    command = cli.get_command(click.Context(cli), "run")
    assert command is not None
    for words, given in (
        ([], {}),
        (["--no-bright", "--loud"], {"greeter": {"bright": False, "loud": True}}),
        (["--bright"], {"greeter": {"bright": True}}),
    ):
        context = command.make_context("run", words)
        assert given_options(context, ["greeter"]) == given
    text = " ".join(CliRunner().invoke(cli, ["run", "--help"]).output.split())
    assert "--bright / --no-bright Whether it shines. [default: bright]" in text


def test_the_help_has_each_default_once_and_from_its_field() -> None:
    text = " ".join(CliRunner().invoke(cli, ["run", "--help"]).output.split())
    assert text.count("become Unknown. [default: 10m]") == 1
    assert text.count("of the machine. [default: 30s]") == 1
    assert "[env var: RELEASE_VERSION]" in text


def test_a_variable_that_no_release_has_filled_in_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every Deployment has RELEASE_VERSION; outside a payload it is the placeholder."""
    monkeypatch.setenv("RELEASE_VERSION", "0.0.1-snapshot")
    command = cli.get_command(click.Context(cli), "run")
    assert command is not None
    context = command.make_context("run", [])
    assert given_options(context, ["cluster-version"]) == {}
