"""Events that are read again as the objects that were written."""

import pytest

from schemas.internal.events import Forgotten, Learned
from streams.flow.requests import channel
from streams.flow.requests.channel import RecentEvents

FORGOTTEN = Forgotten(memory_id="m1", places=())
LEARNED = Learned(memory_id="m1", scope={"user_id": "u1"})


def test_event_is_taken_once() -> None:
    recent = RecentEvents()
    recent.keep(b"value", FORGOTTEN)
    assert recent.take(b"another") is None
    assert recent.take(None) is None
    assert recent.take(b"value") is FORGOTTEN
    assert recent.take(b"value") is None


def test_event_of_several_readers_is_taken_by_each() -> None:
    recent = RecentEvents({Learned: 2})
    recent.keep(b"value", LEARNED)
    assert [recent.take(b"value") for _ in range(3)] == [LEARNED, LEARNED, None]


def test_full_store_keeps_what_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_EVENTS", 2)
    recent = RecentEvents()
    for value in (b"1", b"2", b"3"):
        recent.keep(value, FORGOTTEN)
    assert [recent.take(value) is not None for value in (b"1", b"2", b"3")] == [True, True, False]
    recent.keep(b"4", FORGOTTEN)
    assert recent.take(b"4") is FORGOTTEN


def test_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_BYTES", 10)
    recent = RecentEvents()
    for value in (b"a" * 10, b"b" * 10):
        recent.keep(value, FORGOTTEN)
    assert recent.take(b"b" * 10) is None
    assert recent.take(b"a" * 10) is FORGOTTEN


def test_events_that_nothing_reads_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_EVENTS", 1)
    monkeypatch.setattr(channel, "MAX_AGE_S", 0.0)
    recent = RecentEvents()
    recent.keep(b"1", FORGOTTEN)
    recent.keep(b"2", FORGOTTEN)
    assert recent.take(b"1") is None
    assert recent.take(b"2") is FORGOTTEN
