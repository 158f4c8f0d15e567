"""Passages of several workers in one process: they take turns, and a suspect runs alone."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.adapters.embedding.process.embedding_server import TurnPool
from streams.adapters.embedding.process.frames import WorkSlots, create_slots, read_slots, request_key

SOON_S = 10.0


class Passages:
    """Passages that run until they are let go on; their names in the order in which they began."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.has_begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.has_ended = threading.Semaphore(0)

    def named(self, name: str) -> Callable[[], None]:
        def run() -> None:
            self.began.append(name)
            self.has_begun.release()
            assert self.go_on.acquire(timeout=SOON_S)
            self.has_ended.release()

        return run


@pytest.fixture
def slots(tmp_path: Path) -> Path:
    create_slots(tmp_path / "slots")
    return tmp_path / "slots"


def test_workers_take_turns(slots: Path) -> None:
    pool, passages = TurnPool(1, WorkSlots(slots)), Passages()
    for number in range(5):
        pool.submit("1", b"x", passages.named(f"flood {number}"), alone=False)
    assert passages.has_begun.acquire(timeout=SOON_S)
    pool.submit("2", b"x", passages.named("other"), alone=False)
    for _ in range(5):
        passages.go_on.release()
        assert passages.has_begun.acquire(timeout=SOON_S)
    passages.go_on.release()
    assert passages.began.index("other") <= 2


def test_suspect_runs_alone(slots: Path) -> None:
    pool, passages = TurnPool(2, WorkSlots(slots)), Passages()
    pool.submit("1", b"a", passages.named("first"), alone=False)
    assert passages.has_begun.acquire(timeout=SOON_S)
    pool.submit("1", b"b", passages.named("suspect"), alone=True)
    pool.submit("2", b"c", passages.named("last"), alone=False)
    assert not passages.has_begun.acquire(timeout=0.1)
    passages.go_on.release()
    assert passages.has_begun.acquire(timeout=SOON_S)
    with slots.open("rb") as file:
        assert read_slots(file.fileno()) == {request_key(b"b")}
    assert not passages.has_begun.acquire(timeout=0.1)
    passages.go_on.release()
    assert passages.has_begun.acquire(timeout=SOON_S)
    passages.go_on.release()
    assert passages.began == ["first", "suspect", "last"]


def test_text_is_noted_beside_its_run(slots: Path) -> None:
    pool = TurnPool(1, WorkSlots(slots))
    with slots.open("rb") as file:
        with pool.note(b"a"), pool.note(b"b"):
            assert read_slots(file.fileno()) == {request_key(b"a"), request_key(b"b")}
        assert read_slots(file.fileno()) == frozenset()


def test_query_waits_for_a_suspect_and_no_passage_begins_beside_it(slots: Path) -> None:
    pool, passages = TurnPool(2, WorkSlots(slots)), Passages()
    pool.submit("1", b"b", passages.named("suspect"), alone=True)
    assert passages.has_begun.acquire(timeout=SOON_S)
    threading.Timer(0.1, passages.go_on.release).start()
    with pool.query(b"q", alone=False):
        assert passages.has_ended.acquire(timeout=0)
        pool.submit("1", b"a", passages.named("later"), alone=False)
        assert not passages.has_begun.acquire(timeout=0.1)
    assert passages.has_begun.acquire(timeout=SOON_S)
    passages.go_on.release()


def test_passages_go_on_between_queries_that_never_cease(slots: Path) -> None:
    pool, passages = TurnPool(2, WorkSlots(slots)), Passages()
    passages.go_on.release()
    first, second = (pool.query(b"q", alone=False) for _ in range(2))
    first.__enter__()
    pool.submit("3", b"a", passages.named("passage"), alone=False)
    assert not passages.has_begun.acquire(timeout=0.1)
    second.__enter__()
    first.__exit__(None, None, None)
    assert passages.has_begun.acquire(timeout=SOON_S)
    second.__exit__(None, None, None)
