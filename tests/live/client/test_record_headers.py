"""Headers that the client adds to its records: the caller's principal, and those that the program adds."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from modestream_client import MemoryClient

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.stand_in import StandIn, connected

CALLS: dict[str, Callable[[MemoryClient, str | None], Awaitable[object]]] = {
    "remember": lambda memory, caller: memory.remember("x", principal=caller),
    "remember without a reply": lambda memory, caller: memory.remember("x", wait=False, principal=caller),
    "retrieve": lambda memory, caller: memory.retrieve("x", principal=caller),
    "command": lambda memory, caller: memory.command("health", principal=caller),
    "request": lambda memory, caller: memory.request(
        "commands", {"schema": "command.v1", "scope": {"user_id": "u1"}}, principal=caller
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_principal_is_that_of_the_call_else_of_the_client(
    live_broker: RunningBroker, service: StandIn, call: Callable[[MemoryClient, str | None], Awaitable[object]]
) -> None:
    async with connected(live_broker, service, principal="gateway") as memory:
        await call(memory, "ana-app")
        assert (await service.arrived.get()).headers["principal"] == b"ana-app"
        await call(memory, None)
        assert (await service.arrived.get()).headers["principal"] == b"gateway"


async def test_client_without_a_principal_sends_none(memory: MemoryClient, service: StandIn) -> None:
    await memory.remember("x")
    assert "principal" not in (await service.next("turns")).headers


async def test_headers_of_the_program_are_asked_for_each_record(live_broker: RunningBroker, service: StandIn) -> None:
    traces: Iterator[str] = iter(["00-a", "00-b"])
    async with connected(live_broker, service, headers=lambda: {"traceparent": next(traces)}) as memory:
        await memory.remember("x")
        await memory.retrieve("x")
    assert (await service.next("turns")).headers["traceparent"] == b"00-a"
    assert (await service.next("retrieve")).headers["traceparent"] == b"00-b"
