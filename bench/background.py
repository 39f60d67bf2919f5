"""Changes Widgets at a steady rate, in a process of its own, until told that it is enough.

The change is an annotation: an operator is told and looks, and finds nothing to do.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from bench import widgets
from bench.api import Address, Api
from bench.subjects.marks import mark

IN_FLIGHT = 64


async def main() -> None:
    args = _arguments()
    address = Address(
        url=args.url, authority=args.authority, certificate=args.certificate, key=args.key
    )
    enough = asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    done = 0
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def touch(api: Api, number: int) -> None:
        nonlocal done
        index = args.first + number % (args.last - args.first)
        touched = {f"{widgets.GROUP}/touched": str(number)}
        path = f"{widgets.COLLECTION}/{widgets.name_of(index)}"
        try:
            await api.patch(path, {"metadata": {"annotations": touched}})
            done += 1
        finally:
            slots.release()

    async with Api.open(address) as api, asyncio.TaskGroup() as tasks:
        began, number = time.monotonic(), 0
        mark("running")
        while not enough.done():
            # Whoever falls behind does not catch up with a burst that nobody asked for.
            await asyncio.sleep(max(0.0, began + number / args.rate - time.monotonic()))
            await slots.acquire()
            tasks.create_task(touch(api, number))
            number += 1
        mark("stopped", done)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    for name in ("authority", "certificate", "key"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("first", "last", "rate"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args()


asyncio.run(main())
