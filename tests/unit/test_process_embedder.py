"""The embedder's process: it may die at any moment, and must not outlive its worker."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from schemas.failures import Unavailable
from schemas.vectors import Encoded
from streams.adapters.embedding.frames import packed, unpacked
from streams.adapters.embedding.local_model import LocalModel
from streams.adapters.embedding.process_embedder import ProcessEmbedder
from tests.tiny_models import write_tiny_model


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    return LocalModel("tiny", write_tiny_model(tmp_path / "tiny", 32, words=("red", "house")), 32, "fp32")


@pytest.fixture
async def embedder(model: LocalModel) -> AsyncIterator[ProcessEmbedder]:
    started = ProcessEmbedder.start(model, 1)
    yield started
    await started.close()


async def soon(embedder: ProcessEmbedder, text: str) -> Encoded:
    """Ask until the process is there again."""
    while True:
        try:
            return await embedder.passage(text)
        except Unavailable:
            await asyncio.sleep(0.05)


async def test_a_process_that_was_killed_is_started_again_and_gives_the_same_vectors(embedder: ProcessEmbedder) -> None:
    before = await embedder.passage("the red house")
    os.kill(embedder._child._process.pid, signal.SIGKILL)
    after = await soon(embedder, "the red house")
    assert np.array_equal(before.pooled, after.pooled)


async def test_texts_that_a_killed_process_had_in_hand_are_unavailable(embedder: ProcessEmbedder) -> None:
    await embedder.query("open")
    os.kill(embedder._child._process.pid, signal.SIGSTOP)
    asked = [asyncio.create_task(embedder.passage("red " * 50)) for _ in range(20)]
    await asyncio.sleep(0)
    os.kill(embedder._child._process.pid, signal.SIGKILL)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in answers} == {Unavailable}


async def test_signals_for_the_worker_do_not_end_it(embedder: ProcessEmbedder) -> None:
    _ = embedder.fingerprint
    for order in (signal.SIGTERM, signal.SIGINT):
        os.kill(embedder._child._process.pid, order)
    assert (await embedder.passage("the red house")).pooled.shape == (32,)


def test_it_ends_when_its_worker_is_killed(model: LocalModel) -> None:
    code = (
        "import sys, time; from pathlib import Path;"
        "from streams.adapters.embedding.local_model import LocalModel;"
        "from streams.adapters.embedding.process_embedder import ProcessEmbedder;"
        f"e = ProcessEmbedder.start(LocalModel('tiny', Path({str(model.directory)!r}), 32, 'fp32'), 1);"
        "e.fingerprint; print(e._child._process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as worker:
        assert worker.stdout
        child = int(worker.stdout.readline())
        reading = os.pidfd_open(child)
        worker.kill()
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    assert waiting.poll(10_000), "the embedder's process outlived its worker"
    os.close(reading)


def test_a_model_that_cannot_be_loaded_is_said(model: LocalModel) -> None:
    wrong = LocalModel("tiny", model.directory, 31, "fp32")
    started = ProcessEmbedder.start(wrong, 1)
    with pytest.raises(RuntimeError, match="ended with code"):
        _ = started.fingerprint
    asyncio.run(started.close())


@pytest.mark.parametrize("tokens", [0, 1, 7])
def test_vectors_survive_the_pipe(tokens: int) -> None:
    numbers = np.random.default_rng(1)
    encoded = Encoded(numbers.random(5, np.float32), numbers.random((tokens, 5), np.float32))
    found = unpacked(packed(encoded))
    assert np.array_equal(found.pooled, encoded.pooled)
    assert np.array_equal(found.tokens, encoded.tokens)
