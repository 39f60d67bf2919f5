"""Something that goes on in the background while a test does something else."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(act: Callable[[], None], period: float) -> Iterator[None]:
    """While this lasts, act once each period, in a thread of its own."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(period):
            act()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
