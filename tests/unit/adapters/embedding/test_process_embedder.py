"""The embedder's process: it may die at any moment, and never outlives its worker."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens
from streams.adapters.embedding.process.frames import decode_request, decode_vectors, encode_request, encode_vectors
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from tests.builders.tiny_models import write_tiny_model


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    return LocalModel("tiny", write_tiny_model(tmp_path / "tiny", 32, words=("red", "house")), 32, "fp32")


@pytest.fixture
async def embedder(model: LocalModel) -> AsyncIterator[ProcessEmbedder]:
    started = ProcessEmbedder.start(model, model.directory / "run", 1)
    yield started
    await started.close()


async def soon(embedder: ProcessEmbedder, text: str) -> Encoded:
    """Retry until the process is restarted."""
    while True:
        try:
            return await embedder.passage(text)
        except Unavailable:
            await asyncio.sleep(0.05)


async def test_killed_process_is_restarted_with_the_same_vectors(embedder: ProcessEmbedder) -> None:
    before = await embedder.passage("the red house")
    os.kill(embedder._child._process.pid, signal.SIGKILL)
    after = await soon(embedder, "the red house")
    assert np.array_equal(before.pooled, after.pooled)


async def test_unanswered_texts_of_a_killed_process_are_unavailable(embedder: ProcessEmbedder) -> None:
    await embedder.passage("open")
    os.kill(embedder._child._process.pid, signal.SIGSTOP)
    asked = [asyncio.create_task(embedder.passage("red " * 50)) for _ in range(20)]
    await asyncio.sleep(0)
    os.kill(embedder._child._process.pid, signal.SIGKILL)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in answers} == {Unavailable}


async def test_worker_signals_do_not_end_the_process(embedder: ProcessEmbedder) -> None:
    _ = embedder.fingerprint
    for order in (signal.SIGTERM, signal.SIGINT):
        os.kill(embedder._child._process.pid, order)
    assert (await embedder.passage("the red house")).pooled.shape == (32,)


def test_process_ends_when_its_worker_is_killed(model: LocalModel) -> None:
    code = (
        "import sys, time; from pathlib import Path;"
        "from streams.adapters.embedding.inference.local_model import LocalModel;"
        "from streams.adapters.embedding.process.process_embedder import ProcessEmbedder;"
        f"folder = Path({str(model.directory)!r});"
        "e = ProcessEmbedder.start(LocalModel('tiny', folder, 32, 'fp32'), folder / 'run', 1);"
        "e.fingerprint; print('pid', e._child._process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as worker:
        assert worker.stdout
        child = next(int(line.split()[1]) for line in worker.stdout if line.startswith(b"pid "))
        reading = os.pidfd_open(child)
        worker.kill()
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    assert waiting.poll(10_000), "the embedder's process outlived its worker"
    os.close(reading)


LOADS_FOR_EVER = """
import time
from streams.adapters.embedding.process import child, shared_server
shared_server.load_model = lambda options: time.sleep(600)
child.main()
"""
"""The real process, but for its model, which is never loaded."""


async def test_process_ends_with_its_worker_while_loading(tmp_path: Path) -> None:
    started = ProcessEmbedder([sys.executable, "-c", LOADS_FOR_EVER, "{}"], tmp_path)
    reading = os.pidfd_open(started._child._process.pid)
    loading = asyncio.create_task(started.load())
    await asyncio.sleep(0)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    await started.close()
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    assert waiting.poll(30_000), "the embedder's process outlived its worker"
    os.close(reading)


def test_model_that_fails_to_load_is_missing_with_the_reason(model: LocalModel) -> None:
    started = ProcessEmbedder.start(replace(model, dim=31), model.directory / "run", 1)
    with pytest.raises(ModelMissing, match="declared with 31 dimensions"):
        _ = started.fingerprint
    asyncio.run(started.close())


async def test_folder_without_the_model_is_missing_with_instructions(model: LocalModel) -> None:
    (model.directory / "model.onnx").unlink()
    started = ProcessEmbedder.start(model, model.directory / "run", 1)
    with pytest.raises(ModelMissing, match=rf"^model.onnx not found: put .* into {model.directory}"):
        await started.load()
    await started.close()


async def test_process_that_ends_while_loading_is_a_missing_model(tmp_path: Path) -> None:
    started = ProcessEmbedder([sys.executable, "-c", "raise SystemExit(7)"], tmp_path)
    with pytest.raises(ModelMissing, match="ended while it loaded its model"):
        await started.load()
    await started.close()


async def test_restart_with_another_model_stays_unavailable(model: LocalModel, embedder: ProcessEmbedder) -> None:
    await embedder.load()
    write_tiny_model(model.directory, 32, words=("other",), seed=2)
    os.kill(embedder._child._process.pid, signal.SIGKILL)
    asked = [await outcome(embedder) for _ in range(2)]
    assert embedder._restarting
    await embedder._restarting
    assert {type(each) for each in [*asked, await outcome(embedder)]} == {Unavailable}


async def outcome(embedder: ProcessEmbedder) -> object:
    try:
        return await embedder.passage("red")
    except Unavailable as refusal:
        return refusal


async def test_given_prefix_replaces_the_models_own(model: LocalModel) -> None:
    started = ProcessEmbedder.start(
        replace(model, query_prefix="red ", passage_prefix="red "), model.directory / "run", 1
    )
    await started.load()
    for call in (started.passage, started.query):
        plain, own, other = [(await call("the house", prefix)).pooled for prefix in ("", None, "house \ud83d")]
        assert np.allclose(own, (await call("red the house", "")).pooled, atol=1e-6)
        assert not np.allclose(own, plain, atol=1e-3)
        assert not np.allclose(own, other, atol=1e-3)
    await started.close()


@pytest.mark.parametrize("prefix", ["", "query: ", "\ud83d é"])
@pytest.mark.parametrize("text", ["", "東京", "half \ud83d of a pair"])
def test_requests_survive_the_pipe(prefix: str, text: str) -> None:
    assert decode_request(encode_request(prefix, text)) == (prefix, text)


@pytest.mark.parametrize("tokens", [0, 1, 7])
def test_query_vectors_survive_the_pipe_with_their_spans(tokens: int) -> None:
    numbers = np.random.default_rng(1)
    spans = numbers.integers(0, 99, (tokens, 2), np.int32)
    encoded = Encoded(numbers.random(5, np.float32), numbers.random((tokens, 3), np.float32), spans=spans)
    found = decode_vectors(encode_vectors(encoded))
    assert np.array_equal(found.pooled, encoded.pooled)
    assert np.array_equal(found.tokens, encoded.tokens)
    assert found.tokens.shape == (tokens, 3)
    assert found.spans is not None
    assert np.array_equal(found.spans, spans)
    assert found.pooled.flags.aligned
    assert found.tokens.flags.aligned


@pytest.mark.parametrize("tokens", [0, 3])
def test_passage_vectors_survive_the_pipe(tokens: int) -> None:
    numbers = np.random.default_rng(1)
    on_grid = dequantise_tokens(numbers.integers(-127, 128, (tokens, 128)).astype(np.int8))
    encoded = Encoded(numbers.random(8, np.float32), on_grid)
    content = encode_vectors(encoded)
    assert len(content) < 60 + tokens * 128
    decoded = decode_vectors(content)
    assert np.array_equal(decoded.tokens, on_grid)
    assert decoded.spans is None
    assert np.array_equal(decoded.pooled, encoded.pooled)
