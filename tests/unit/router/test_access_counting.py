"""What the router makes of a master that has no answer."""

import asyncio
from pathlib import Path

import msgspec

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.router.access_logging import AccessLogWatch
from quarterdeck.router.last_counts import INTERVALS
from quarterdeck.router.loss import RequestCounts
from quarterdeck.router.proxy import HAProxy


async def test_an_empty_list_of_workers_ends_none_of_them(tmp_path: Path) -> None:
    """A master that is just reloading lists none; later they would be counted once more."""

    async def say_nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    proxy = HAProxy(tmp_path)
    proxy.trouble = ""
    # `look` reports no condition.
    logging = AccessLogWatch(AccessLog(address=f"{tmp_path}/log"), proxy, None)  # type: ignore[arg-type]
    logging.tally = msgspec.structs.replace(logging.tally, workers={7: RequestCounts(10, 1)})
    before = logging.tally
    server = await asyncio.start_unix_server(say_nothing, proxy.master_socket)
    try:
        await logging.look()
    finally:
        server.close()
        logging.close()
    assert logging.tally == before


def test_an_old_worker_is_asked_less_and_less_often() -> None:
    delays = [INTERVALS.delay(times, lambda: 0.0) for times in (1, 2, 3, 20)]
    assert delays == [0.2, 0.4, 0.8, 10.0]
