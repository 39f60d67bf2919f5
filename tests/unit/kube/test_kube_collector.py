"""The garbage collector beside big lists."""

import gc
from collections.abc import Iterator

import pytest

from quarterdeck.kube.collector import collector_paused, freeze_collector


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.enable()


def test_it_is_paused_while_a_list_is_decoded_also_if_that_fails() -> None:
    def fail() -> None:
        with collector_paused():
            assert not gc.isenabled()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_whoever_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_what_the_first_lists_brought_is_not_walked_again() -> None:
    gc.set_threshold(700, 10, 10)
    before = gc.get_freeze_count()
    held = [[number] for number in range(1000)]
    freeze_collector()
    assert gc.get_freeze_count() - before >= len(held)
    assert gc.get_threshold()[0] > 10_000


def test_a_process_that_collects_more_rarely_already_keeps_its_thresholds() -> None:
    gc.set_threshold(1_000_000, 30, 30)
    freeze_collector()
    assert gc.get_threshold() == (1_000_000, 30, 30)
