"""A hung embedder: questions give up within seconds, the process is replaced, a text that ends it is refused alone."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.failures import ModelMissing, Unavailable
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process.child_pipes import HangLimits
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from tests.builders.tiny_models import write_tiny_model

QUICK = HangLimits(tick_s=0.05, stuck=2, silent=10, passage=10, query_s=0.2, load_s=30)

DIES_OVER_BAD = """
import sys, os
from streams.adapters.embedding.process import child, frames
decode = frames.decode_request
def dying(data):
    prefix, text = decode(data)
    if "bad" in text:
        os._exit(9)
    return prefix, text
frames.decode_request = dying
child.main()
"""
"""The real process, but for one word that ends it."""

HANGS_OVER_SLOW = """
import time
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.process import child
run = FastembedModel.run
def hanging(model, prepared):
    time.sleep(600 if "slow" in prepared.text else 0)
    return run(model, prepared)
FastembedModel.run = hanging
child.main()
"""
"""The real process, but for one word over which it hangs, with signs of life."""

TELLS_LENGTHS = """
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.process import child
def telling(model, text, prefix):
    raise ValueError(f"{len(text)} characters")
FastembedModel.prepare_passage = FastembedModel.query = telling
child.main()
"""
"""The real process, but for its answers: how many characters each text has."""


@pytest.fixture
async def embedder(tmp_path: Path) -> AsyncIterator[ProcessEmbedder]:
    model = LocalModel("tiny", write_tiny_model(tmp_path / "tiny", 32, words=("red", "house")), 32, "fp32")
    started = ProcessEmbedder.start(model, tmp_path / "run", 1, limits=QUICK)
    await started.load()
    yield started
    await started.close()


async def until_embedded(embedder: ProcessEmbedder, text: str) -> object:
    while True:
        try:
            return await embedder.passage(text)
        except Unavailable:
            await asyncio.sleep(0.05)
        except RuntimeError as refusal:
            return refusal


async def test_query_of_a_stopped_process_is_unavailable_in_time(embedder: ProcessEmbedder) -> None:
    pid = embedder._child._process.pid
    os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(5):
        for _ in range(2):
            with pytest.raises(Unavailable):
                await embedder.query("red")
    assert embedder.problem is not None
    # A stopped process does not see that its connection is closed.
    os.kill(pid, signal.SIGCONT)


async def test_stopped_process_is_replaced_without_a_call(embedder: ProcessEmbedder) -> None:
    await embedder.passage("red")
    before = embedder._child._process.pid
    os.kill(before, signal.SIGSTOP)
    async with asyncio.timeout(30):
        while embedder.problem is None or embedder._child._process.pid == before:
            await asyncio.sleep(0.02)
            if embedder._child._process.pid != before:
                break
        await until_embedded(embedder, "red house")
    assert embedder.problem is None


async def running(program: str, folder: Path, limits: HangLimits = QUICK) -> ProcessEmbedder:
    model = LocalModel("tiny", write_tiny_model(folder / "tiny", 32, words=("red", "house")), 32, "fp32")
    template = ProcessEmbedder.start(model, folder / "run", 1)
    command = (template._command[0], "-c", program, *template._command[3:])
    await template.close()
    embedder = ProcessEmbedder(command, folder / "run", limits=limits)
    await embedder.load()
    return embedder


async def test_text_that_ends_the_process_is_refused_and_others_are_not(tmp_path: Path) -> None:
    embedder = await running(DIES_OVER_BAD, tmp_path)
    async with asyncio.timeout(60):
        texts = ["bad", *(f"red {number}" for number in range(20))]
        refused, *others = await asyncio.gather(*(until_embedded(embedder, text) for text in texts))
    assert "3 times" in str(refused)
    assert not [other for other in others if isinstance(other, Exception)]
    with pytest.raises(Unavailable, match="3 times"):
        await embedder.query("bad")
    await embedder.close()


async def test_text_that_takes_too_long_is_refused_and_others_are_not(tmp_path: Path) -> None:
    embedder = await running(HANGS_OVER_SLOW, tmp_path, replace(QUICK, silent=10_000))
    first = embedder._child._process.pid
    async with asyncio.timeout(60):
        refused, other = await asyncio.gather(*(until_embedded(embedder, text) for text in ("slow", "red")))
    assert "3 times" in str(refused)
    assert not isinstance(other, Exception)
    assert embedder._child._process.pid != first
    await embedder.close()


async def test_texts_are_cut_before_the_process_reads_them(tmp_path: Path) -> None:
    embedder = await running(TELLS_LENGTHS, tmp_path, replace(QUICK, query_s=10.0))
    for read in (embedder.passage, embedder.query):
        for length, read_length in ((8192, 8192), (8193, 8192), (10**6, 8192), (7, 7)):
            with pytest.raises(RuntimeError, match=f"^ValueError: {read_length} characters$"):
                await read("a" * length)
    await embedder.close()


async def test_loading_has_a_time_limit(tmp_path: Path) -> None:
    sleeping = (sys.executable, "-c", "import time; time.sleep(600)")
    embedder = ProcessEmbedder(sleeping, tmp_path, limits=HangLimits(load_s=0.2))
    with pytest.raises(ModelMissing, match=r"within 0\.2 s"):
        await embedder.load()
    await embedder.close()
