"""Events that only `settle` acknowledges."""

from types import SimpleNamespace
from typing import Any

from faust.types.tuples import ConsumerMessage
from hypothesis import given
from hypothesis import strategies as some

from schemas.messages.records import Record
from streams.runtime.delivery import HeldEvent


class Consumer:
    """Records acknowledged offsets."""

    def __init__(self) -> None:
        self.acked: list[int] = []

    def ack(self, message: Any) -> bool:
        """Record an offset."""
        self.acked.append(message.offset)
        return True


def event_of(consumer: Consumer, **changes: Any) -> HeldEvent:
    """Build an event as Faust does."""
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
    message = ConsumerMessage(**(known | changes))
    message.incref()
    app: Any = SimpleNamespace(consumer=consumer)
    return HeldEvent(app, message.key, message.value, None, message)


def test_record_keeps_repeated_and_null_headers_and_milliseconds() -> None:
    expected = Record("memory.turns", 2, 17, 1_772_357_400_123, b"k", b"v", (("a", b"1"), ("a", b"2"), ("none", None)))
    assert event_of(Consumer()).record == expected


@given(some.integers(0, 4_000_000_000_000))
def test_timestamp_in_seconds_converts_back_to_milliseconds(timestamp_ms: int) -> None:
    assert event_of(Consumer(), timestamp=timestamp_ms / 1000).record.timestamp_ms == timestamp_ms


def test_missing_parts_stay_empty() -> None:
    bare = event_of(Consumer(), headers=None, key=None, value=None, timestamp=None).record
    assert (bare.headers, bare.key, bare.value, bare.timestamp_ms) == ((), None, None, 0)


def test_empty_value_is_not_none() -> None:
    assert event_of(Consumer(), value=b"", key=b"").record.value == b""


def test_only_settle_acknowledges() -> None:
    consumer = Consumer()
    event = event_of(consumer)
    assert event.ack() is False
    assert consumer.acked == []
    event.settle()
    assert consumer.acked == [17]
