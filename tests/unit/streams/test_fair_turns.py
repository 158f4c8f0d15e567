"""Users have turns, whatever one of them asks for."""

import asyncio

import pytest

from streams import fair_queue
from streams.fair_queue import FairTurns


async def test_flood_of_one_user_delays_another_by_one_turn() -> None:
    turns, order = FairTurns(1), list[str]()

    async def ask(user: str) -> None:
        async with turns.turn(user):
            await asyncio.sleep(0)
            order.append(user)

    flood = [asyncio.create_task(ask("flood")) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.gather(asyncio.create_task(ask("bob")), *flood)
    assert order.index("bob") <= 3
    assert len(order) == 51


async def test_no_more_than_the_limit_run_at_once_and_a_cancelled_one_frees_its_turn() -> None:
    turns, running, most = FairTurns(2), 0, 0

    async def ask(user: str = "u") -> None:
        nonlocal running, most
        async with turns.turn(user):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    asking = [asyncio.create_task(ask(str(number % 4))) for number in range(8)]
    await asyncio.sleep(0)
    for waiting in asking[3::2]:
        waiting.cancel()
    await asyncio.wait(asking)
    assert most == 2
    await asyncio.wait_for(ask(), 1)


async def test_turn_that_waits_for_a_store_is_given_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "MAX_TURN_S", 0.01)
    turns, ended = FairTurns(1), asyncio.Event()

    async def hang() -> None:
        async with turns.turn("hanging"):
            await ended.wait()

    hanging = asyncio.create_task(hang())
    await asyncio.sleep(0)
    for _ in range(2):
        async with asyncio.timeout(5), turns.turn("bob"):
            pass
    ended.set()
    await hanging
    assert turns._free == 1


async def test_floods_leave_a_turn_to_the_next_user() -> None:
    turns, ended, began = FairTurns(8), asyncio.Event(), list[str]()

    async def ask(user: str) -> None:
        async with turns.turn(user):
            began.append(user)
            await ended.wait()

    asking = [asyncio.create_task(ask(user)) for user in ["a"] * 9 + ["b"] * 9 + ["c", "d"]]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert began == ["a"] * 4 + ["b"] * 2 + ["c", "d"]
    ended.set()
    await asyncio.gather(*asking)
    assert len(began) == 20
    assert turns._free == 8
    assert dict(turns._turns) == {}
    assert dict(turns._waiting) == {}
