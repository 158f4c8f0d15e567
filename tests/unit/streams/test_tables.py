"""Changelog writes that fail: each is written again, unless a newer one of its key is on its way."""

import asyncio
from typing import Any

import faust
import pytest

from streams import tables
from streams.tables import AwaitedTable


class Changelog:
    """Stands where Faust's producer takes changelog records; keeps them, and gives them up when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[tuple[bytes, bytes]] = []
        self.sent: list[asyncio.Future[None]] = []
        monkeypatch.setattr(faust.Table, "send_changelog", self.send)
        monkeypatch.setattr(tables, "RETRY_SECONDS", 0.0)

    def send(self, _partition: int | None, key: bytes, value: bytes, *_: Any, **__: Any) -> asyncio.Future[None]:
        self.written.append((key, value))
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


@pytest.fixture
def table() -> AwaitedTable:
    return AwaitedTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"), name="t")


async def test_a_write_that_the_producer_gave_up_is_written_again(
    monkeypatch: pytest.MonkeyPatch, table: AwaitedTable
) -> None:
    log = Changelog(monkeypatch)
    table.send_changelog(0, b"k", b"v")
    waiting = asyncio.ensure_future(table.writes[0])
    log.sent[0].set_exception(TimeoutError())
    while len(log.sent) < 2:
        await asyncio.sleep(0)
    assert not waiting.done()
    log.sent[1].set_result(None)
    await waiting
    assert log.written == [(b"k", b"v"), (b"k", b"v")]


async def test_an_old_write_never_lands_after_a_newer_one_of_its_key(
    monkeypatch: pytest.MonkeyPatch, table: AwaitedTable
) -> None:
    log = Changelog(monkeypatch)
    table.send_changelog(0, b"k", b"old")
    table.send_changelog(0, b"other", b"x")
    table.send_changelog(0, b"k", b"new")
    log.sent[0].set_exception(TimeoutError())
    log.sent[1].set_result(None)
    log.sent[2].set_result(None)
    await asyncio.gather(*table.writes)
    assert log.written == [(b"k", b"old"), (b"other", b"x"), (b"k", b"new")]
