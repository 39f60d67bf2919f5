import asyncio
import socket

from quarterdeck.router.resolver import Resolver, is_own
from quarterdeck.testing.waiting import eventually_async


async def test_a_name_that_changes_its_address_is_noticed_and_a_failure_changes_nothing() -> None:
    answers: list[tuple[str, ...] | OSError] = [
        ("192.0.2.1",),
        ("127.0.0.1", "192.0.2.1"),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        socket.gaierror(socket.EAI_NONAME, "no such name"),
    ]
    seen: list[dict[str, tuple[str, ...]]] = []
    asked: list[str] = []

    async def look_up(name: str) -> tuple[str, ...]:
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(name)
        if isinstance(answer, OSError):
            raise answer
        return answer

    resolver = Resolver(lambda: seen.append(dict(resolver.resolved)), 0.01, look_up)
    resolver.want(["shop.example"])
    task = asyncio.create_task(resolver.run())
    try:
        await eventually_async(lambda: len(asked) > len(answers), "all answers")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [one["shop.example"] for one in seen] == [
        ("192.0.2.1",),
        ("127.0.0.1", "192.0.2.1"),
        (),
    ]
    resolver.want([])
    assert resolver.resolved == {}


def test_an_address_of_this_machine_is_known_on_whatever_interface_it_is() -> None:
    assert is_own("127.0.0.1")
    assert is_own("127.9.9.9")
    assert is_own("::ffff:127.0.0.1")
    assert not is_own("192.0.2.77")
    assert not is_own("no address")
