"""Mistakes of an operator's author are reported with the author's file and line."""

import re
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.controller.test_controller_watch import keys, obj, of

from quarterdeck.api.meta import CONFIG_MAPS, Key, Object
from quarterdeck.api.samples_v1alpha1 import NOTES
from quarterdeck.controller import DONE, Controller, Objects, Result, Selection, Watch, to_owner
from quarterdeck.controller.mistakes import Mistake
from quarterdeck.kube import Client, Connection, LabelSelector

HERE = re.escape(Path(__file__).name)
LABELS = {"app": "ours"}


def to_text(_: object) -> Any:
    return "hello"


async def forgets(_key: Key) -> Result:
    return cast("Result", None)


async def also_forgets(_word: str, _key: Key) -> Result:
    return cast("Result", True)


class Forgets:
    async def __call__(self, _key: Key) -> Result:
        return cast("Result", 5)


def to_nothing(_: object) -> Any:
    return None


def to_one_key(_: object) -> Any:
    return Key("ns", "x")


@pytest.mark.parametrize(
    ("mapping", "returned"),
    [
        pytest.param(to_text, "to_text returned 'hello'", id="a text"),
        pytest.param(to_nothing, "to_nothing returned None", id="nothing"),
        pytest.param(to_one_key, r"to_one_key returned Key\(", id="a key without a list"),
    ],
)
def test_a_mapping_that_returns_no_list_of_keys_is_named(mapping: Any, returned: str) -> None:
    with pytest.raises(Mistake, match=rf"{HERE}:\d+: {returned}.*; return a list of Keys"):
        keys(Watch(of(CONFIG_MAPS), mapping), None, obj("x"))


def not_asynchronous(_key: Key) -> Result:
    return DONE


async def test_a_reconcile_that_is_not_asynchronous_is_named() -> None:
    controller = Controller("test", cast("Any", not_asynchronous), [])
    with pytest.raises(Mistake, match=rf"{HERE}:\d+: not_asynchronous returned .*`async def`"):
        await controller.reconcile(Key("ns", "x"))


@pytest.mark.parametrize("watches", [Watch(of(CONFIG_MAPS)), [of(CONFIG_MAPS)], [to_owner]])
def test_watches_that_are_none_are_named(watches: Any) -> None:
    with pytest.raises(Mistake, match=rf"{HERE}:\d+: the watches of .*Watch\(objects\)"):
        Controller("test", forgets, watches)


@pytest.mark.parametrize(
    ("reconcile", "returned"),
    [
        pytest.param(forgets, "None", id="a function without a return"),
        pytest.param(partial(also_forgets, "x"), "True", id="a partial function"),
        pytest.param(Forgets(), "5", id="an object that is called"),
    ],
)
async def test_a_reconcile_that_returns_no_result_is_named(reconcile: Any, returned: str) -> None:
    controller = Controller("test", reconcile, [])
    with pytest.raises(
        Mistake, match=rf"{HERE}:\d+: .* returned {returned}; return DONE or a Result"
    ):
        await controller.reconcile(Key("ns", "x"))


def test_a_list_of_watches_of_several_kinds_is_one_for_a_type_checker() -> None:
    async def reconcile(_key: Key) -> Result:
        return DONE

    # mypy checks this file: an inferred list[object] would not be accepted here.
    watches = [Watch(of(NOTES)), Watch(of(CONFIG_MAPS), to_owner(NOTES))]
    assert Controller("test", reconcile, watches).watches == tuple(watches)


@pytest.mark.parametrize(
    ("selection", "field"),
    [
        pytest.param(
            Selection(labels=LabelSelector(match_labels=LABELS)), "metadata.labels", id="labels"
        ),
        pytest.param(Selection(namespace="other"), "metadata.namespace", id="namespace"),
        pytest.param(Selection(name="other"), "metadata.name", id="name"),
    ],
)
@pytest.mark.parametrize("call", ["ensure", "create"])
async def test_an_object_that_its_own_cache_would_not_show_is_not_created(
    selection: Selection, field: str, call: str
) -> None:
    client = Client(Connection(server="http://127.0.0.1:1", tls=None))
    objects: Objects[Object] = Objects(
        CONFIG_MAPS, of(CONFIG_MAPS), client, "test", selection=selection
    )
    with pytest.raises(Mistake, match=rf"{HERE}:\d+: ConfigMap x .*; set its {field}$"):
        await getattr(objects, call)(obj("x"))


def test_an_object_within_the_selection_is_no_mistake() -> None:
    selection = Selection(namespace="ns", name="x", labels=LabelSelector(match_labels=LABELS))
    assert selection.excludes(obj("x", labels={**LABELS, "more": "1"})) == ""
