"""A process that stands still loses the partitions that are another worker's."""

import asyncio
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from streams.runtime import partition_locks
from streams.runtime.kafka_app import create_kafka_app
from streams.runtime.partition_locks import (
    END_POLL_INTERVAL_S,
    HELD_LIMIT_S,
    STOPPED_LIMIT_S,
    OverdueHolders,
    PartitionLocks,
)
from streams.settings import Settings
from tests.builders.lock_holder import HOLDER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")


@pytest.fixture
async def holder(tmp_path: Path) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, str(tmp_path), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"held\n"
    yield process
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


class Seconds:
    at = 0.0

    def __call__(self) -> float:
        return self.at


class Fence:
    """Gives answers from the last one on; the first one again and again."""

    def __init__(self) -> None:
        self.answers = [True]

    def is_open(self) -> bool:
        return self.answers.pop() if len(self.answers) > 1 else self.answers[0]


async def look_for(holders: OverdueHolders, clock: Seconds, seconds: float, lock: Path) -> None:
    until = clock.at + seconds
    while clock.at <= until:
        holders.look([lock])
        clock.at += END_POLL_INTERVAL_S


async def until_stopped(process: Process) -> None:
    process.send_signal(signal.SIGSTOP)
    while not partition_locks._is_stopped(process.pid):
        await asyncio.sleep(0.01)


async def test_partition_of_a_stopped_process_is_had_soon(
    tmp_path: Path, holder: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_locks, "STOPPED_LIMIT_S", 0.5)
    holder.send_signal(signal.SIGSTOP)
    with closing(PartitionLocks(tmp_path)) as locks:
        locks.assign([0, 1])
        waiting = asyncio.create_task(locks.acquire())
        await asyncio.sleep(0.1)
        assert locks.awaited() == {"1": holder.pid}
        await asyncio.wait_for(waiting, 20)
        assert locks.are_held
        assert locks.awaited() == {}
    assert await holder.wait() == -signal.SIGKILL


async def test_process_that_stops_for_a_moment_goes_on(tmp_path: Path, holder: Process) -> None:
    holders, lock = OverdueHolders(now=(clock := Seconds())), tmp_path / "partition-1.lock"
    for _ in range(3):
        await until_stopped(holder)
        await look_for(holders, clock, STOPPED_LIMIT_S - 1, lock)
        holder.send_signal(signal.SIGCONT)
        while partition_locks._is_stopped(holder.pid):
            await asyncio.sleep(0.01)
        await look_for(holders, clock, 1, lock)
    assert await lives(holder)


async def test_running_process_may_close_its_stores_and_is_killed_after_a_minute(
    tmp_path: Path, holder: Process
) -> None:
    holders, lock = OverdueHolders(now=(clock := Seconds())), tmp_path / "partition-1.lock"
    await look_for(holders, clock, HELD_LIMIT_S - 1, lock)
    assert await lives(holder)
    await look_for(holders, clock, 2, lock)
    assert await asyncio.wait_for(holder.wait(), 10) == -signal.SIGKILL


async def test_waiter_that_stood_still_counts_anew(tmp_path: Path, holder: Process) -> None:
    """Its group may have given the partition back to the holder meanwhile, whether that runs or not."""
    holders, lock = OverdueHolders(now=(clock := Seconds())), tmp_path / "partition-1.lock"
    await look_for(holders, clock, 1, lock)
    clock.at += 2 * HELD_LIMIT_S
    await look_for(holders, clock, HELD_LIMIT_S - 1, lock)
    await until_stopped(holder)
    await look_for(holders, clock, STOPPED_LIMIT_S - 1, lock)
    clock.at += 2 * STOPPED_LIMIT_S
    await look_for(holders, clock, STOPPED_LIMIT_S - 1, lock)
    assert await lives(holder)


async def test_waiter_whose_fence_is_closed_kills_nothing_and_then_counts_anew(tmp_path: Path, holder: Process) -> None:
    fence = Fence()
    holders, lock = OverdueHolders(fence.is_open, clock := Seconds()), tmp_path / "partition-1.lock"
    await look_for(holders, clock, HELD_LIMIT_S - 1, lock)
    fence.answers = [False]
    await look_for(holders, clock, HELD_LIMIT_S / 2, lock)
    fence.answers = [True]
    await look_for(holders, clock, HELD_LIMIT_S - 1, lock)
    assert await lives(holder)
    await look_for(holders, clock, 2, lock)
    assert await asyncio.wait_for(holder.wait(), 10) == -signal.SIGKILL


async def test_fence_that_closes_during_the_look_saves_the_holder(tmp_path: Path, holder: Process) -> None:
    fence = Fence()
    holders, lock = OverdueHolders(fence.is_open, clock := Seconds()), tmp_path / "partition-1.lock"
    await look_for(holders, clock, HELD_LIMIT_S - 1, lock)
    fence.answers = [False, True]
    clock.at += 1
    holders.look([lock])
    clock.at += 1
    holders.look([lock])
    assert await lives(holder)


async def test_lock_that_was_in_other_hands_meanwhile_is_counted_anew(tmp_path: Path, holder: Process) -> None:
    holders, lock = OverdueHolders(now=(clock := Seconds())), tmp_path / "partition-1.lock"
    await look_for(holders, clock, HELD_LIMIT_S - 10, lock)
    lock.write_text("1\n")
    await look_for(holders, clock, 1, lock)
    lock.write_text(f"{holder.pid}\n")
    await look_for(holders, clock, HELD_LIMIT_S - 1, lock)
    assert await lives(holder)


async def test_another_assignment_counts_anew(tmp_path: Path, holder: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_locks, "HELD_LIMIT_S", END_POLL_INTERVAL_S / 2)
    with closing(PartitionLocks(tmp_path)) as locks:
        locks.assign([1])
        waiting = asyncio.create_task(locks.acquire())
        for _ in range(12):
            await asyncio.sleep(END_POLL_INTERVAL_S / 5)
            locks.assign([1])
        assert holder.returncode is None
        await asyncio.wait_for(waiting, 10)
    assert await holder.wait() == -signal.SIGKILL


async def test_worker_whose_fence_is_closed_waits(
    tmp_path: Path, holder: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_locks, "HELD_LIMIT_S", 0.0)
    (tmp_path / "run").symlink_to(tmp_path)
    app: Any = create_kafka_app(Settings(data_dir=tmp_path, _env_file=None), "w")
    app.fence._heard_at = float("-inf")
    with closing(app.partition_locks) as locks:
        locks.assign([1])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(locks.acquire(), 0.3)
        assert await lives(holder)


async def test_process_without_the_file_is_left_alone(tmp_path: Path) -> None:
    """As of a worker in another container, whose number here is another process's."""
    other = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        lock = tmp_path / "partition-1.lock"
        lock.write_text(f"{other.pid}\n")
        await until_stopped(other)
        await look_for(OverdueHolders(now=(clock := Seconds())), clock, 2 * HELD_LIMIT_S, lock)
        assert await lives(other)
    finally:
        other.kill()
        await other.wait()


async def lives(process: Process) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), 0.3)
    return process.returncode is None
