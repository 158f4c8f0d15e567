"""Deaths of records, over a real file: opened again without a clean end, it shows what killed the process."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.failures import Poison, Unavailable
from streams.flow.death_counts import FILE_BYTES, MAX_DEATHS, MAX_SUSPECTS, DeathCounts, noted, record_name
from tests.builders.turns import record

BAD = record_name("memory.turns-Remember", record(b"bad", offset=7))
OTHER = record_name("memory.turns-Remember", record(b"other", offset=8))


def refused(deaths: DeathCounts, name: bytes) -> bool:
    deaths.enter(name)
    try:
        deaths.refuse_poison()
    except Poison:
        return True
    finally:
        deaths.leave()
    return False


def die(file: Path, name: bytes, times: int = 1) -> None:
    """End as many processes while the record's code runs."""
    for _ in range(times):
        DeathCounts(file).enter(name)


def test_third_death_makes_a_record_poison_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "run" / "under-way"
    die(file, BAD, 2)
    assert not refused(DeathCounts(file), BAD)
    die(file, BAD)
    deaths = DeathCounts(file)
    assert refused(deaths, BAD)
    assert not refused(deaths, OTHER)


def test_poison_stays_poison_when_it_is_delivered_again(tmp_path: Path) -> None:
    die(tmp_path / "f", BAD, 3)
    DeathCounts(tmp_path / "f").finish(BAD)
    assert refused(DeathCounts(tmp_path / "f"), BAD)


def test_record_that_finishes_starts_at_none_again(tmp_path: Path) -> None:
    die(tmp_path / "f", BAD, 2)
    DeathCounts(tmp_path / "f").finish(BAD)
    die(tmp_path / "f", BAD, 2)
    assert not refused(DeathCounts(tmp_path / "f"), BAD)


def test_same_offset_of_a_topic_made_anew_is_another_record(tmp_path: Path) -> None:
    die(tmp_path / "f", BAD, 3)
    anew = record_name("memory.turns-Remember", record(b"new", offset=7, timestamp_ms=1))
    assert not refused(DeathCounts(tmp_path / "f"), anew)


def test_suspects_are_bounded_and_the_newest_stay(tmp_path: Path) -> None:
    for number in range(MAX_SUSPECTS + 10):
        die(tmp_path / "f", b"x" * 490 + b" 0 %d 0" % number)
    die(tmp_path / "f", BAD, 3)
    assert refused(DeathCounts(tmp_path / "f"), BAD)
    assert (tmp_path / "f").stat().st_size == FILE_BYTES


@pytest.mark.parametrize("content", [b"", b"\xff" * FILE_BYTES, b"\x01" + os.urandom(FILE_BYTES - 1), b"3"])
def test_damaged_file_counts_for_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    assert not refused(DeathCounts(tmp_path / "f"), BAD)
    die(tmp_path / "f", BAD, 3)
    assert refused(DeathCounts(tmp_path / "f"), BAD)


def test_where_no_file_can_be_written_the_worker_goes_on(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"a file")
    assert not refused(DeathCounts(tmp_path / "run" / "under-way"), BAD)


async def test_waiting_record_has_no_death(tmp_path: Path) -> None:
    outage = asyncio.Event()
    for _ in range(5):
        waiting = asyncio.create_task(noted(outage.wait(), BAD, DeathCounts(tmp_path / "f")))
        await asyncio.sleep(0)
        # The next process opens the file while this one waits.
        assert not refused(DeathCounts(tmp_path / "f"), BAD)
        waiting.cancel()
    assert (tmp_path / "f").read_bytes()[0] == 0


async def test_result_error_and_cancellation_pass(tmp_path: Path) -> None:
    deaths, seen = DeathCounts(tmp_path / "f"), []

    async def work() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append((tmp_path / "f").read_bytes()[0])
            raise
        return "never"

    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("k")

    cancelled = asyncio.create_task(noted(work(), BAD, deaths))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert seen == [1]
    with pytest.raises(KeyError):
        await noted(fail(), BAD, deaths)
    assert await noted(asyncio.sleep(0, "done"), BAD, deaths) == "done"
    future = asyncio.get_running_loop().create_future()
    future.set_result(3)
    assert await noted(future, BAD, deaths) == 3


@pytest.mark.parametrize("problem", [SystemExit, KeyboardInterrupt, GeneratorExit, KeyError, TypeError])
async def test_what_code_raises_against_its_agent_is_a_death(tmp_path: Path, problem: type[BaseException]) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise problem

    for _ in range(MAX_DEATHS):
        assert not refused(DeathCounts(tmp_path / "f"), BAD)
        # An exit must not reach the event loop, which it would end without the process.
        with pytest.raises((RuntimeError, LookupError, TypeError)):
            await noted(fail(), BAD, DeathCounts(tmp_path / "f"))
    assert refused(DeathCounts(tmp_path / "f"), BAD)


@pytest.mark.parametrize("problem", [Unavailable("Kafka is away"), OSError("no space left"), asyncio.CancelledError()])
async def test_outage_and_cancellation_are_no_death(tmp_path: Path, problem: BaseException) -> None:
    async def fail() -> None:
        raise problem

    for _ in range(MAX_DEATHS):
        with pytest.raises(type(problem)):
            await noted(fail(), BAD, DeathCounts(tmp_path / "f"))
    assert not refused(DeathCounts(tmp_path / "f"), BAD)


async def test_coroutine_that_is_closed_is_no_death(tmp_path: Path) -> None:
    deaths = DeathCounts(tmp_path / "f")
    for _ in range(MAX_DEATHS):
        waiting = noted(asyncio.sleep(60), BAD, deaths)
        waiting.send(None)
        waiting.close()
    assert not refused(DeathCounts(tmp_path / "f"), BAD)


async def test_kill_of_a_step_that_goes_on_where_it_was_is_no_death(tmp_path: Path) -> None:
    marked = []

    async def work() -> None:
        marked.append((tmp_path / "f").read_bytes()[0])

    await noted(work(), BAD, DeathCounts(tmp_path / "f"), counts_kills=False)
    assert marked == [0]


KILLED = """
import asyncio, os, sys
from pathlib import Path
from streams.flow.death_counts import DeathCounts, noted
async def kill():
    await asyncio.sleep(0)
    os.kill(os.getpid(), 9)
async def main():
    deaths = DeathCounts(Path(sys.argv[1]))
    waiting = asyncio.create_task(noted(asyncio.sleep(60), b"waiting 0 1 1", deaths))
    await noted(kill(), b"bad 0 7 7", deaths)
asyncio.run(main())
"""


def test_killed_process_leaves_the_record_whose_code_ran(tmp_path: Path) -> None:
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "f")], check=False).returncode == -9
    deaths = DeathCounts(tmp_path / "f")
    assert refused(deaths, b"bad 0 7 7")
    assert not refused(deaths, b"waiting 0 1 1")


KILLED_IN_THREAD = """
import asyncio, os, sys, threading
from pathlib import Path
from types import SimpleNamespace
from pydantic import BaseModel, field_validator
from agents.commands.admit import Admit
from streams.flow.requests.pipeline import MAX_INLINE_BYTES, Admission
from streams.flow.requests.channel import Channel
from streams.flow.death_counts import DeathCounts, noted
from tests.builders.turns import record
from tests.fakes.clock import FakeClock

class Deadly(BaseModel):
    text: str
    @field_validator("text")
    @classmethod
    def kill(cls, text):
        # Until the event loop has gone round: the record waits for the thread.
        if threading.current_thread() is not threading.main_thread():
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()
        os.kill(os.getpid(), 9)

async def main():
    global loop
    loop = asyncio.get_running_loop()
    deaths = DeathCounts(Path(sys.argv[1]))
    channel = Channel("memory.turns", {"deadly.v1": Deadly}, None)
    admission = Admission(channel, Admit(), 4, "memory.replies", FakeClock(), deaths)
    waiting = asyncio.create_task(noted(asyncio.sleep(60), b"waiting 0 1 1", deaths))
    value = b'{"schema": "deadly.v1", "text": "' + b"x" * MAX_INLINE_BYTES + b'"}'
    await noted(admission.message(record(value)), b"bad 0 7 7", deaths)
asyncio.run(main())
"""


def test_killed_process_leaves_the_large_record_that_a_thread_decoded(tmp_path: Path) -> None:
    for _ in range(3):
        code = subprocess.run([sys.executable, "-c", KILLED_IN_THREAD, str(tmp_path / "f")], check=False).returncode
        assert code == -9
    deaths = DeathCounts(tmp_path / "f")
    assert refused(deaths, b"bad 0 7 7")
    assert not refused(deaths, b"waiting 0 1 1")


def test_record_that_ran_while_a_thread_decoded_another_has_a_death_once(tmp_path: Path) -> None:
    for _ in range(MAX_DEATHS):
        deaths = DeathCounts(tmp_path / "f")
        deaths.enter(BAD)
        # A record with deaths is decoded on the event loop, where it is alone.
        if deaths.may_use_thread():
            with deaths.in_thread(BAD):
                deaths.leave()
                deaths.enter(OTHER)
                deaths = DeathCounts(tmp_path / "f")
    assert not refused(DeathCounts(tmp_path / "f"), OTHER)
    assert refused(DeathCounts(tmp_path / "f"), BAD)


def test_process_that_ends_as_a_thread_begins_is_one_death(tmp_path: Path) -> None:
    for _ in range(2):
        deaths = DeathCounts(tmp_path / "f")
        deaths.enter(BAD)
        with deaths.in_thread(BAD):
            DeathCounts(tmp_path / "f")
    assert not refused(DeathCounts(tmp_path / "f"), BAD)


def test_thread_of_a_step_that_goes_on_where_it_was_notes_nothing(tmp_path: Path) -> None:
    deaths = DeathCounts(tmp_path / "f")
    deaths.enter(BAD, counts_kills=False)
    with deaths.in_thread(deaths.counted):
        assert not DeathCounts(tmp_path / "f")._deaths
