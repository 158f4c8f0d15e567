"""Events that only `settle` acknowledges, and the inboxes that they wait in."""

import asyncio
from typing import Any

from faust.types.tuples import ConsumerMessage
from hypothesis import given
from hypothesis import strategies as some

from schemas.messages.records import Record
from streams.runtime.delivery import MAX_WAITING_EVENTS, HeldEvent, Inbox


class Consumer:
    def __init__(self) -> None:
        self.acked: list[int] = []

    def ack(self, message: Any) -> bool:
        self.acked.append(message.offset)
        return True


def message_of(**changes: Any) -> ConsumerMessage:
    known: dict[str, Any] = {
        "topic": "memory.turns",
        "partition": 2,
        "offset": 17,
        "timestamp": 1_772_357_400.123,
        "timestamp_type": 0,
        "headers": [("a", b"1"), ("a", b"2"), ("none", None)],
        "key": b"k",
        "value": b"v",
        "checksum": None,
    }
    return ConsumerMessage(**(known | changes))


def event_of(consumer: Consumer, **changes: Any) -> HeldEvent:
    message = message_of(**changes)
    message.incref()
    return HeldEvent(message, consumer)


def test_record_keeps_repeated_and_null_headers_and_milliseconds() -> None:
    expected = Record("memory.turns", 2, 17, 1_772_357_400_123, b"k", b"v", (("a", b"1"), ("a", b"2"), ("none", None)))
    assert event_of(Consumer()).record == expected


@given(some.integers(0, 4_000_000_000_000))
def test_timestamp_in_seconds_converts_back_to_milliseconds(timestamp_ms: int) -> None:
    assert event_of(Consumer(), timestamp=timestamp_ms / 1000).record.timestamp_ms == timestamp_ms


def test_missing_parts_stay_empty() -> None:
    bare = event_of(Consumer(), headers=None, key=None, value=None, timestamp=None).record
    assert bare.headers == ()
    assert bare.key is None
    assert bare.value is None
    assert bare.timestamp_ms == 0


def test_empty_value_is_not_none() -> None:
    assert event_of(Consumer(), value=b"", key=b"").record.value == b""


def test_only_settle_acknowledges() -> None:
    consumer = Consumer()
    event = event_of(consumer)
    assert consumer.acked == []
    event.settle()
    assert consumer.acked == [17]


def test_event_of_two_agents_is_acknowledged_by_the_second() -> None:
    consumer = Consumer()
    message = message_of()
    message.incref(2)
    first, second = HeldEvent(message, consumer), HeldEvent(message, consumer)
    first.settle()
    assert consumer.acked == []
    second.settle()
    assert consumer.acked == [17]


def test_left_event_is_never_acknowledged() -> None:
    consumer = Consumer()
    event = event_of(consumer)
    event.leave()
    event.settle()
    assert consumer.acked == []


async def test_events_leave_an_inbox_in_order_until_it_is_closed() -> None:
    consumer, inbox = Consumer(), Inbox()
    events = [event_of(consumer, offset=offset) for offset in range(120)]
    reading = asyncio.create_task(read_all(inbox))
    for event in events:
        inbox.put(event)
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    late = event_of(consumer, offset=120)
    inbox.put(late)
    inbox.close()
    assert await reading == events
    late.settle()
    assert consumer.acked == [], "an agent that stops takes no more events"


async def test_cleared_events_are_left() -> None:
    consumer, inbox = Consumer(), Inbox()
    event = event_of(consumer)
    inbox.put(event)
    inbox.clear()
    inbox.close()
    assert await read_all(inbox) == []
    event.settle()
    assert consumer.acked == []


async def test_full_inbox_has_room_when_an_event_is_taken() -> None:
    inbox = Inbox()
    for _ in range(MAX_WAITING_EVENTS):
        inbox.put(event_of(Consumer()))
    waiting = asyncio.create_task(inbox.has_room())
    await asyncio.sleep(0)
    assert inbox.is_full
    assert not waiting.done()
    await anext(inbox)
    await waiting
    assert not inbox.is_full


async def test_reading_many_events_lets_other_tasks_run() -> None:
    inbox = Inbox()
    for _ in range(500):
        inbox.put(event_of(Consumer()))
    reading = asyncio.create_task(read_all(inbox))
    passes = 0
    while inbox._waiting:
        passes += 1
        await asyncio.sleep(0)
    inbox.close()
    await reading
    assert passes >= 10


async def read_all(inbox: Inbox) -> list[HeldEvent]:
    return [event async for event in inbox]
