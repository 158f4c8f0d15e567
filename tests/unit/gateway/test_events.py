"""Events: resumed on any gateway, or reset where something may be missing; the latest of each receipt."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.service import events as module
from gateway.service.calls import Refused
from gateway.service.events import TOPICS, EventReader, Feed, Receipts, Sent
from schemas.messages.records import Record

PARTITION = 1
KEY = b"u1"


def memory(memory_id: str = "m1", mode: str = "general", **more: Any) -> dict[str, Any]:
    fields = {"memory_id": memory_id, "mode": mode, "boundary": "u1", "scope": {"user_id": "u1", "project_id": "p1"}}
    return {**fields, "versions": [{}], "text": "secret text", **more}


def remembered(*of: Any, **more: Any) -> bytes:
    return json.dumps({"schema": "remembered.v1", "memory": memory(*of, **more)}).encode()


def kinds(reader: EventReader, value: bytes | dict[str, Any], at_ms: int = 1_000) -> list[str]:
    encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
    return [event.type for _, event in reader.read(KEY, encoded, at_ms)]


def test_an_event_has_no_text() -> None:
    [(boundary, event)] = EventReader().read(KEY, remembered(), 1_700_000_000_000)
    assert boundary == "u1"
    assert event.as_json() == {
        "type": "remembered",
        "memory_id": "m1",
        "mode": "general",
        "project_id": "p1",
        "version": 1,
        "at": "2023-11-14T22:13:20.000Z",
    }


def test_another_mode_is_a_move() -> None:
    reader = EventReader()
    assert kinds(reader, remembered()) == ["remembered"]
    assert kinds(reader, remembered(mode="journal")) == ["moved"]
    assert kinds(reader, remembered(mode="journal")) == ["remembered"]


@pytest.mark.parametrize("named", [{"memory_id": "m1"}, {"memory_ids": ["m0", "m1"]}, {"mode": "general"}])
def test_a_move_is_known_from_its_command(named: dict[str, Any]) -> None:
    reader = EventReader()
    assert kinds(reader, {"schema": "change.v1", "action": "move", "to": "journal", **named}) == []
    assert kinds(reader, remembered(mode="journal"), 2_000) == ["moved"]
    assert kinds(reader, remembered("m9", mode="other"), 2_000) == ["remembered"]


def test_a_new_memory_long_after_a_move_is_new() -> None:
    reader = EventReader()
    kinds(reader, {"schema": "change.v1", "action": "move", "mode": "general", "to": "journal"})
    assert kinds(reader, remembered("m9", mode="journal"), 120_000) == ["remembered"]


def test_further_events() -> None:
    reader = EventReader()
    assert kinds(reader, remembered(superseded_by="m2")) == ["superseded"]
    embedded = {"schema": "embedded.v1", "memory_id": "m1", "mode": "general"}
    assert kinds(reader, {**embedded, "status": "ready"}) == ["embedded"]
    assert kinds(reader, {**embedded, "status": "failed"}) == []
    also = [{**embedded, "memory_id": f"m{number}", "status": "ready"} for number in (2, 3)]
    assert kinds(reader, {**embedded, "status": "failed", "also": also}) == ["embedded"] * 2
    assert kinds(reader, {"schema": "forgotten.v1", "memory_id": "m1"}) == ["forgotten"]
    assert kinds(reader, {"schema": "consolidated.v1", "created": ["m3", "m4"]}) == ["consolidated"] * 2


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b'{"schema": "remembered.v1"}', b'{"schema": "x"}'])
def test_what_can_not_be_read_tells_nothing(value: bytes) -> None:
    assert EventReader().read(KEY, value, 0) == []


def feed_at(start: int = 0, **limits: int) -> Feed:
    feed = Feed(**limits)
    feed.begin({(topic, PARTITION): start for topic in TOPICS})
    return feed


def tell(feed: Feed, offset: int, memory_id: str, key: bytes = KEY) -> None:
    value = json.dumps({"schema": "forgotten.v1", "memory_id": memory_id}).encode()
    feed.take("remembered", PARTITION, offset, 0, key, value)


async def take(stream: AsyncIterator[Sent], count: int) -> list[Sent]:
    async with asyncio.timeout(2):
        return [await anext(stream) for _ in range(count)]


def ids(sent: list[Sent]) -> list[str]:
    return [
        sent_event.event if isinstance(sent_event.event, str) else sent_event.event.memory_id for sent_event in sent
    ]


async def test_a_listener_gets_the_events_of_its_user_alone() -> None:
    feed = feed_at()
    stream = feed.listen("u1", PARTITION, None)
    assert ids(await take(stream, 1)) == ["opened"]
    tell(feed, 0, "other", key=b"u2")
    tell(feed, 1, "m1")
    assert ids(await take(stream, 1)) == ["m1"]


async def test_a_listener_resumes_on_another_gateway() -> None:
    left, right = feed_at(), feed_at()
    stream = left.listen("u1", PARTITION, None)
    await take(stream, 1)
    for feed in (left, right):
        tell(feed, 0, "m1")
        tell(feed, 1, "m2")
    [first] = await take(stream, 1)
    assert ids(await take(right.listen("u1", PARTITION, first.id), 2)) == ["opened", "m2"]


async def test_what_is_gone_is_a_reset() -> None:
    feed = feed_at(max_buffered=2)
    opened = (await take(feed.listen("u1", PARTITION, None), 1))[0]
    for offset in range(3):
        tell(feed, offset, f"m{offset}")
    assert ids(await take(feed.listen("u1", PARTITION, opened.id), 2)) == ["opened", "reset"]


async def test_a_gateway_that_began_later_resets() -> None:
    assert ids(await take(feed_at(10).listen("u1", PARTITION, "1-5-5-5-5"), 2)) == ["opened", "reset"]


@pytest.mark.parametrize("after", ["", "nonsense", "1-2", "2-0-0-0-0", "1--1-0-0-0", "1-0-0-0-" + "9" * 30])
async def test_an_id_that_is_none_is_a_reset(after: str) -> None:
    assert ids(await take(feed_at().listen("u1", PARTITION, after), 2)) == ["opened", "reset"]


async def test_a_listener_that_resumes_within_a_record_gets_the_rest_of_it() -> None:
    feed = feed_at()
    stream = feed.listen("u1", PARTITION, None)
    await take(stream, 1)
    value = json.dumps({"schema": "consolidated.v1", "created": ["m1", "m2"]}).encode()
    feed.take("consolidated", PARTITION, 0, 0, KEY, value)
    [first] = await take(stream, 1)
    assert "m2" in ids(await take(feed.listen("u1", PARTITION, first.id), 3))


async def test_a_slow_listener_is_reset_and_ends() -> None:
    feed = feed_at(max_waiting=2)
    stream = feed.listen("u1", PARTITION, None)
    await take(stream, 1)
    for offset in range(10):
        tell(feed, offset, f"m{offset}")
    assert ids([event async for event in stream]) == ["reset"]


async def test_a_listener_that_goes_leaves_nothing() -> None:
    feed = feed_at()
    stream = feed.listen("u1", PARTITION, None)
    await take(stream, 1)
    await stream.aclose()  # type: ignore[attr-defined]
    assert feed._listeners == {}


def told(receipt_id: str, state: str) -> Record:
    value = json.dumps({"receipt_id": receipt_id, "state": state}).encode()
    return Record("receipts", 0, 0, 0, receipt_id.encode(), value)


async def test_the_latest_is_shown() -> None:
    receipts = Receipts()
    receipts.take([told("r1", "hidden"), told("r2", "hidden"), told("r1", "erased")])
    assert (await receipts.get("r1"))["state"] == "erased"
    assert (await receipts.get("r2"))["state"] == "hidden"


async def test_one_that_is_on_its_way_is_awaited() -> None:
    receipts = Receipts()
    asked = asyncio.create_task(receipts.get("r1"))
    await asyncio.sleep(0)
    receipts.take([told("r2", "hidden")])
    await asyncio.sleep(0)
    receipts.take([told("r1", "hidden")])
    assert (await asked)["receipt_id"] == "r1"


async def test_the_oldest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECEIPTS", 2)
    monkeypatch.setattr(module, "ARRIVAL_S", 0)
    receipts = Receipts()
    receipts.take([told(f"r{number}", "hidden") for number in range(3)])
    assert (await receipts.get("r2"))["receipt_id"] == "r2"
    with pytest.raises(Refused) as error:
        await receipts.get("r0")
    assert error.value.code == "not_found"
