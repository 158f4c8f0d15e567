"""Retries of changelog writes."""

import asyncio
from typing import Any

import faust
import pytest
from aiokafka.errors import MessageSizeTooLargeError

from streams.runtime import awaited_table
from streams.runtime.awaited_table import AwaitableTable


class Changelog:
    """In place of Faust's producer: records changelog writes; tests complete or fail them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[tuple[bytes, bytes]] = []
        self.sent: list[asyncio.Future[None]] = []
        monkeypatch.setattr(faust.Table, "send_changelog", self.send)
        monkeypatch.setattr(awaited_table, "CHANGELOG_RETRY_S", 0.0)

    def send(self, _partition: int | None, key: bytes, value: bytes, *_: Any, **__: Any) -> asyncio.Future[None]:
        self.written.append((key, value))
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


@pytest.fixture
def table() -> AwaitableTable:
    return AwaitableTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"), name="t")


async def test_failed_changelog_write_is_retried(monkeypatch: pytest.MonkeyPatch, table: AwaitableTable) -> None:
    log = Changelog(monkeypatch)
    table.send_changelog(0, b"k", b"v")
    waiting = asyncio.ensure_future(table.pending_writes[0])
    log.sent[0].set_exception(TimeoutError())
    while len(log.sent) < 2:
        await asyncio.sleep(0)
    assert not waiting.done()
    log.sent[1].set_result(None)
    await waiting
    assert log.written == [(b"k", b"v"), (b"k", b"v")]


async def test_old_write_is_not_retried_after_a_newer_one_of_its_key(
    monkeypatch: pytest.MonkeyPatch, table: AwaitableTable
) -> None:
    log = Changelog(monkeypatch)
    table.send_changelog(0, b"k", b"old")
    table.send_changelog(0, b"other", b"x")
    table.send_changelog(0, b"k", b"new")
    log.sent[0].set_exception(TimeoutError())
    log.sent[1].set_result(None)
    log.sent[2].set_result(None)
    await asyncio.gather(*table.pending_writes)
    assert log.written == [(b"k", b"old"), (b"other", b"x"), (b"k", b"new")]


async def test_write_that_kafka_never_takes_fails_its_event(
    monkeypatch: pytest.MonkeyPatch, table: AwaitableTable
) -> None:
    log = Changelog(monkeypatch)
    table.send_changelog(0, b"k", b"large")
    log.sent[0].set_exception(MessageSizeTooLargeError("too large"))
    with pytest.raises(MessageSizeTooLargeError):
        await asyncio.wait_for(asyncio.ensure_future(table.pending_writes[0]), 1)
    assert log.written == [(b"k", b"large")]


def test_changelog_accepts_the_largest_records(table: AwaitableTable) -> None:
    assert table.changelog_topic.config is not None
    assert table.changelog_topic.config["max.message.bytes"] == str(16 * 1024 * 1024)
    assert table.changelog_topic.compacting
