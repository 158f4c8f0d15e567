"""A record in the wrong partition is moved once, and served there as it was sent."""

from typing import Any

import pytest

from schemas.failures import Rejected
from schemas.messages.records import Outgoing, Record
from streams.wire.partitioning import MAX_MOVES, MOVED_FROM, partition_of
from tests.builders.turns import PARTITIONS, record
from tests.harnesses.requests import REPLY, RequestHarness


@pytest.mark.parametrize("key", [None, b"", b"another", b"\xff"])
async def test_a_record_in_the_wrong_partition_is_moved_unseen(served: RequestHarness, key: bytes | None) -> None:
    right = partition_of(b"u1", PARTITIONS)
    misplaced = served.valid(("trace", b"x"), key=key, partition=(right + 1) % PARTITIONS, offset=9)
    await served.take(misplaced)
    assert (served.handled, served.publisher.replies, served.letters) == ([], [], [])
    [out] = served.publisher.sent
    assert (out.topic, out.key, out.partition) == (served.channel.topic, b"u1", right)
    assert (out.value, out.timestamp_ms) == (misplaced.value, misplaced.timestamp_ms)
    assert out.headers[:-1] == misplaced.headers
    assert served.counted("moved", topic=served.channel.topic) == 1


def arrived(out: Outgoing) -> Record:
    """A moved record, where it was moved to."""
    assert out.partition is not None
    assert out.timestamp_ms is not None
    return Record(out.topic, out.partition, 77, out.timestamp_ms, out.key, out.value, out.headers)


async def moved_by(served: RequestHarness, **changes: Any) -> Record:
    """A record of this channel after it was moved."""
    wrong = (partition_of(b"u1", PARTITIONS) + 1) % PARTITIONS
    await served.take(served.valid(key=b"as it was", partition=wrong, offset=9, **changes))
    return arrived(served.publisher.sent.pop())


async def test_a_moved_request_is_answered_under_the_key_as_it_was_sent(served: RequestHarness) -> None:
    await served.take(await moved_by(served))
    [reply] = served.publisher.replies
    assert (reply.key, reply.headers) == (b"as it was", (("correlation_id", b"\x00\xff"),))


async def test_dead_letter_of_a_relocated_turn_is_the_original_record(turns: RequestHarness) -> None:
    turns.problem = Rejected("unknown_mode", "no", "mode")
    moved = await moved_by(turns)
    await turns.take(moved)
    [letter] = turns.letters
    told = dict(letter.headers)
    assert (letter.key, told["dead_letter_offset"]) == (b"as it was", b"9")
    assert told["dead_letter_partition"] != str(moved.partition).encode()
    assert MOVED_FROM not in told
    assert letter.headers[: len(REPLY)] == REPLY


async def test_a_moved_record_that_a_tool_copied_elsewhere_is_moved_again(served: RequestHarness) -> None:
    moved = await moved_by(served)
    copied = Record(moved.topic, (moved.partition + 1) % PARTITIONS, 0, 0, moved.key, moved.value, moved.headers)
    await served.take(copied)
    [out] = served.publisher.sent
    assert out.partition == moved.partition


async def test_a_record_that_never_arrives_is_refused_in_the_end(served: RequestHarness) -> None:
    headers = [(MOVED_FROM, b"0:1:-")] * MAX_MOVES
    await served.take(served.valid(*headers, partition=(partition_of(b"u1", PARTITIONS) + 1) % PARTITIONS))
    assert [error["code"] for error in served.errors] == ["internal"]
    assert served.handled == []


@pytest.mark.parametrize("forged", [b"", b"\xff", b"1:1:A", b"1:1:AB=", b"x", b"9" * 1000, b"1:1:" + b"=" * 100])
async def test_a_forged_header_stops_nobody(served: RequestHarness, forged: bytes) -> None:
    await served.take(served.valid((MOVED_FROM, forged)))
    assert [reply.key for reply in served.publisher.replies] == [b"u1"]
    await served.take(record(b"{", headers=((MOVED_FROM, forged),), topic=served.channel.topic))
    [letter] = served.letters
    assert (MOVED_FROM, forged) in letter.headers
