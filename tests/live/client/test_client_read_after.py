"""The client's queries name its earlier writes in `read_after`."""

import os
import signal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from modestream_client import MemoryClient, MemoryServiceError, MemoryTimeout

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import eventually
from tests.worlds.live.stand_in import SOON, StandIn, error, finds, partition_of, reply_by_contract, silent


async def read_after(memory: MemoryClient, service: StandIn, **how: Any) -> int | None:
    await memory.retrieve("x", **how)
    seen: int | None = (await service.next("retrieve")).value["read_after"]
    return seen


@pytest.mark.parametrize("wait", [True, False])
async def test_query_reads_after_the_users_own_writes(memory: MemoryClient, service: StandIn, *, wait: bool) -> None:
    assert await read_after(memory, service) is None
    written = [await memory.remember(f"{number}", wait=wait) for number in range(3)]
    assert await read_after(memory, service) == written[-1].offset == 2
    assert await read_after(memory, service, users="somebody else") is None


async def test_query_reads_after_turns_only(memory: MemoryClient, service: StandIn) -> None:
    await memory.remember("x")
    for _ in range(3):
        await memory.command("forget", {"user": True})
        assert await read_after(memory, service) == 0


async def test_query_for_several_users_has_read_after_for_each(memory: MemoryClient, service: StandIn) -> None:
    offsets = {user: (await memory.remember("x", user_id=user)).offset for user in ("a", "b", "a")}
    service.behaviour = lambda seen: [finds(seen.value["scope"]["user_id"])]
    await memory.retrieve("x", users=["a", "b", "c"])
    asked = [(await service.next("retrieve")).value for _ in range(3)]
    assert {q["scope"]["user_id"]: q["read_after"] for q in asked} == {**offsets, "c": None}


@pytest.mark.parametrize("chosen", [None, 0, 41])
async def test_read_after_can_be_chosen(memory: MemoryClient, service: StandIn, chosen: int | None) -> None:
    await memory.remember("x")
    assert await read_after(memory, service, read_after=chosen) == chosen


async def test_read_after_of_another_clients_write_is_its_offset(memory: MemoryClient, service: StandIn) -> None:
    told = (await memory.remember("x")).read_after
    assert told == f"{partition_of('u1')}:0"
    assert await read_after(memory, service, read_after=told) == 0
    assert await read_after(memory, service, read_after=f"{partition_of('u1')}:41") == 41


async def test_read_after_of_another_partition_is_refused(memory: MemoryClient) -> None:
    foreign = f"{(partition_of('u1') + 1) % 4}:0"
    for told in (foreign, "9999:0"):
        with pytest.raises(MemoryServiceError, match="partition of this user") as refused:
            await memory.retrieve("x", read_after=told)
        assert refused.value.code == "invalid_value"
        assert refused.value.field == "read_after"


async def test_rejected_or_unanswered_turn_counts_as_written(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda seen: [error("internal", "no")] if seen.topic == "turns" else reply_by_contract(seen)
    with pytest.raises(MemoryServiceError):
        await memory.remember("x")
    assert await read_after(memory, service) == 0


async def is_stopped(pid: int) -> bool:
    """True if every thread of a process is stopped: the signal reaches them one after another."""
    states = [file.read_text().rpartition(")")[2].split()[0] for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}


async def test_cancelled_turn_counts_once_kafka_has_it(
    memory: MemoryClient, service: StandIn, live_broker: RunningBroker
) -> None:
    # In u1's partition, so that it is acknowledged after u1's turn.
    neighbour = next(user for n in count() if partition_of(user := f"n{n}") == partition_of("u1"))
    await memory.remember("x", user_id=neighbour)
    os.kill(live_broker.pid, signal.SIGSTOP)
    try:
        await eventually(lambda: is_stopped(live_broker.pid), "the broker has stopped")
        with pytest.raises(MemoryTimeout, match="did not acknowledge"):
            await memory.remember("x", timeout=SOON, wait=False)
    finally:
        os.kill(live_broker.pid, signal.SIGCONT)
    await memory.remember("x", user_id=neighbour)
    assert await read_after(memory, service) == 1


async def test_write_without_reply_needs_only_the_acknowledgement(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = silent
    remembered = await memory.remember("x", wait=False)
    seen = await service.next("turns")
    assert remembered.partition == seen.partition
    assert remembered.offset == seen.offset
    assert remembered.memory_id is None
    assert seen.headers == {}
