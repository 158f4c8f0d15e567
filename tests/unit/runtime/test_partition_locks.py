"""A partition's files belong to one process of a data directory at a time."""

import asyncio
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from streams.runtime.partition_locks import PartitionLocks
from tests.builders.lock_holder import HOLDER


async def test_partition_is_had_once_its_last_owner_has_released_it(tmp_path: Path) -> None:
    with closing(PartitionLocks(tmp_path)) as first, closing(PartitionLocks(tmp_path)) as second:
        assert first.assign([0, 1]) == []
        await first.acquire()
        second.assign([1])
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert not second.is_held(1)
        assert first.assign([0]) == [1]
        first.release(1)
        await asyncio.wait_for(waiting, 5)
        assert not first.is_held(1)
        assert second.is_held(1)
        assert second.are_held


async def test_next_assignment_ends_a_wait(tmp_path: Path) -> None:
    with closing(PartitionLocks(tmp_path)) as first, closing(PartitionLocks(tmp_path)) as second:
        first.assign([0])
        await first.acquire()
        second.assign([0, 1])
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(0.05)
        # Not held any more than before: it was given to the other one.
        assert second.assign([1]) == []
        await asyncio.wait_for(waiting, 5)
        assert not second.is_held(0)
        assert second.are_held


async def test_death_of_its_owner_frees_a_partition(tmp_path: Path) -> None:
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, str(tmp_path), stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    with closing(PartitionLocks(tmp_path)) as locks:
        locks.assign([1])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(locks.acquire(), 0.2)
        assert (tmp_path / "partition-1.lock").read_text() == f"{holder.pid}\n"
        holder.send_signal(signal.SIGKILL)
        await holder.wait()
        await asyncio.wait_for(locks.acquire(), 5)
        assert locks.is_held(1)
