"""One embedder's process for several workers: its start, its end, and what becomes of a text that ends it."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.failures import ModelMissing, Unavailable
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process import frames
from streams.adapters.embedding.process.child_pipes import HangLimits
from streams.adapters.embedding.process.embedder_process import end_shared_processes
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from tests.builders.tiny_models import write_tiny_model

QUICK = HangLimits(tick_s=0.05, stuck=2, silent=10, passage=400, query_s=5.0, load_s=60)

DIES_OVER_BAD = """
import os
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.process import child
run = FastembedModel.run
def dying(model, prepared):
    if "bad" in prepared.text:
        os._exit(9)
    return run(model, prepared)
FastembedModel.run = dying
child.main()
"""
"""The real process, but for one word that ends it."""

WORKER = """
import sys, time
from pathlib import Path
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
model, shared = Path(sys.argv[1]), Path(sys.argv[2])
embedder = ProcessEmbedder.start(LocalModel("tiny", model, 32, "fp32"), shared, 2)
embedder.fingerprint
print("pid", embedder._child._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    return LocalModel("tiny", write_tiny_model(tmp_path / "tiny", 32, words=("red", "house")), 32, "fp32")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    # Longer than an address of a socket may be.
    return tmp_path / ("deep" * 30) / "embedders"


@asynccontextmanager
async def workers(model: LocalModel, shared: Path, number: int = 2) -> AsyncIterator[list[ProcessEmbedder]]:
    """Open so many embedders on one directory, as so many workers do."""
    async with AsyncExitStack() as stack:
        started = [ProcessEmbedder.start(model, shared, 2, limits=QUICK) for _ in range(number)]
        for each in started:
            stack.push_async_callback(each.close)
            await each.load()
        yield started


def pid_of(embedder: ProcessEmbedder) -> int:
    return embedder._child._process.pid


def told_pid(worker: "subprocess.Popen[bytes]") -> int:
    assert worker.stdout
    return next(int(line.split()[1]) for line in worker.stdout if line.startswith(b"pid "))


def has_ended(pid: int, within_s: float = 10.0) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    found = bool(waiting.poll(within_s * 1000))
    os.close(process)
    return found


async def embedded(embedder: ProcessEmbedder, text: str) -> object:
    while True:
        try:
            return await embedder.passage(text)
        except Unavailable:
            await asyncio.sleep(0.05)
        except RuntimeError as refusal:
            return refusal


async def test_workers_share_one_process_that_ends_with_the_last(model: LocalModel, shared: Path) -> None:
    async with workers(model, shared, 1) as [last]:
        async with workers(model, shared, 2) as [first, second]:
            assert pid_of(first) == pid_of(second) == pid_of(last)
            assert {len((await each.passage("red house")).tokens) for each in (first, second, last)} == {2}
        pid = pid_of(last)
        await last.passage("red")
    assert has_ended(pid)
    assert end_shared_processes(shared) == []


@pytest.fixture
def starting(model: LocalModel, shared: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Start workers in processes of their own; those that are left are killed."""
    command = (sys.executable, "-c", WORKER, str(model.directory), str(shared))
    with ExitStack() as stack:

        def start() -> "subprocess.Popen[bytes]":
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
            stack.enter_context(worker)
            stack.callback(worker.kill)
            return worker

        yield start


async def test_process_outlives_the_worker_that_started_it_and_ends_with_the_last(
    model: LocalModel, shared: Path, starting: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    starter, follower = starting(), starting()
    pid = told_pid(starter)
    assert told_pid(follower) == pid
    async with workers(model, shared, 1) as [last]:
        for child in (starter, follower):
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        await last.passage("red")
        assert pid_of(last) == pid
    assert has_ended(pid)


def test_process_ends_when_all_workers_are_killed(starting: Callable[[], "subprocess.Popen[bytes]"]) -> None:
    started = [starting(), starting()]
    [pid] = {told_pid(each) for each in started}
    for each in started:
        each.kill()
    assert has_ended(pid)


async def test_killed_process_is_restarted_once_for_all(model: LocalModel, shared: Path) -> None:
    async with workers(model, shared) as [first, second]:
        before = pid_of(first)
        os.kill(before, signal.SIGKILL)
        await asyncio.gather(*(embedded(each, f"red {n}") for each in (first, second) for n in range(5)))
        assert pid_of(first) == pid_of(second) != before


async def test_stopped_process_is_replaced_for_all(model: LocalModel, shared: Path) -> None:
    async with workers(model, shared) as [first, second]:
        await asyncio.gather(first.passage("red"), second.passage("red"))
        before = pid_of(first)
        os.kill(before, signal.SIGSTOP)
        asked = asyncio.gather(embedded(first, "red house"), embedded(second, "house"))
        async with asyncio.timeout(60):
            await asked
        assert pid_of(first) == pid_of(second) != before


async def test_text_that_ends_the_process_is_refused_and_those_of_other_workers_are_not(
    model: LocalModel, shared: Path
) -> None:
    template = ProcessEmbedder.start(model, shared, 2)
    command = (sys.executable, "-c", DIES_OVER_BAD, *template._command[3:])
    await template.close()
    first, second = (ProcessEmbedder(command, shared, limits=QUICK) for _ in range(2))
    async with asyncio.timeout(100):
        await asyncio.gather(first.load(), second.load())
        texts = [(first, "bad"), *((second, f"red {number}") for number in range(20))]
        refused, *others = await asyncio.gather(*(embedded(each, text) for each, text in texts))
    assert "3 times" in str(refused)
    assert not [found for found in others if isinstance(found, Exception)]
    await asyncio.gather(first.close(), second.close())


async def test_worker_that_reads_nothing_holds_up_no_other(model: LocalModel, shared: Path) -> None:
    async with workers(model, shared) as [silent, other]:
        process = silent._child._process
        text = frames.encode_request("", "red house " * 200)
        flood = b"".join(frames.encode_frame(number, frames.PASSAGE, text) for number in range(1, 101))
        await asyncio.to_thread(process._connection.sendall, flood)
        async with asyncio.timeout(60):
            for number in range(30):
                await other.passage(f"house {number}")


async def test_reason_of_a_missing_model_reaches_all_workers(model: LocalModel, shared: Path) -> None:
    wrong = replace(model, dim=31)
    started = [ProcessEmbedder.start(wrong, shared, 1) for _ in range(2)]
    for each in started:
        with pytest.raises(ModelMissing, match="declared with 31 dimensions"):
            await each.load()
    for each in started:
        await each.close()


async def test_process_that_hangs_without_workers_is_ended_by_the_next_supervisor(
    model: LocalModel, shared: Path
) -> None:
    async with workers(model, shared, 1) as [worker]:
        pid = pid_of(worker)
        os.kill(pid, signal.SIGSTOP)
    assert end_shared_processes(shared) == [pid]
    assert has_ended(pid)
