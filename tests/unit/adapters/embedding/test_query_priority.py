"""A query in the embedder's process does not compete with passages that have not begun."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process import frames
from streams.adapters.embedding.process.embedding_server import EmbeddingServer, TurnPool
from streams.adapters.embedding.process.frames import WorkSlots, create_slots
from tests.builders.tiny_models import write_tiny_model
from tests.fakes.paced_model import PacedModel

PASSAGES = ("one", "two", "three", "four", "five")

QUERY_NUMBER = 100

Pool = Callable[[int], TurnPool]
"""Makes the pool of so many threads."""


@pytest.fixture
def model(tmp_path: Path) -> PacedModel:
    return PacedModel.load(LocalModel("tiny", write_tiny_model(tmp_path / "tiny", 24), 24, "fp32"))


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    create_slots(slots := tmp_path / "slots")
    return lambda threads: TurnPool(threads, WorkSlots(slots))


def answered(model: PacedModel, pool: TurnPool, threads: int, queries: int) -> list[int]:
    """Send all passages, once all threads run one the queries; return the numbers of the answers in their order."""
    (requests, to_child), (responses, from_child) = (_pipe() for _ in range(2))

    def write(frame: bytes) -> None:
        from_child.write(frame)

    serving = EmbeddingServer(model, write, pool, "1")
    server = threading.Thread(target=serving.serve, args=(requests,))
    server.start()
    to_child.write(_requests(frames.PASSAGE, PASSAGES, 1))
    for _ in range(threads):
        model.began.acquire()
    to_child.write(_requests(frames.QUERY, ["q"] * queries, QUERY_NUMBER))
    numbers = [_next_number(responses) for _ in range(len(PASSAGES) + queries)]
    to_child.close()
    server.join()
    for end in (requests, responses, from_child):
        end.close()
    return numbers


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb", buffering=0)


def _requests(kind: int, texts: Sequence[str], first: int) -> bytes:
    encoded = (frames.encode_request("", text) for text in texts)
    return b"".join(frames.encode_frame(number, kind, each) for number, each in enumerate(encoded, first))


def _next_number(responses: BinaryIO) -> int:
    header = frames.decode_header(responses.read(frames.FRAME_HEADER.size))
    responses.read(header.length)
    return header.number


@pytest.mark.parametrize("threads", [1, 2])
def test_no_passage_begins_while_a_query_is_under_way(model: PacedModel, pool: Pool, threads: int) -> None:
    answered(model, pool(threads), threads, queries=1)
    assert model.began_beside_query == []


@pytest.mark.parametrize("threads", [1, 2])
def test_a_query_waits_for_at_most_the_passages_that_run(model: PacedModel, pool: Pool, threads: int) -> None:
    assert answered(model, pool(threads), threads, queries=1).index(QUERY_NUMBER) <= threads


def test_passages_go_on_after_queries(model: PacedModel, pool: Pool) -> None:
    assert sorted(answered(model, pool(2), 2, queries=3)) == [1, 2, 3, 4, 5, 100, 101, 102]
