"""A record in the wrong partition is moved once and handled unchanged."""

from typing import Any

import pytest

from schemas.failures import Rejected
from schemas.messages.records import Outgoing, Record
from streams.topics import MAX_INPUT_BYTES
from streams.wire.dead_letters import size_of
from streams.wire.partitioning import MAX_MOVES, MOVED_FROM, partition_of
from tests.builders.turns import PARTITIONS, record
from tests.harnesses.requests import REPLY, RequestHarness


@pytest.mark.parametrize("key", [None, b"", b"another", b"\xff"])
async def test_record_in_the_wrong_partition_is_moved_unseen(harness: RequestHarness, key: bytes | None) -> None:
    right = partition_of(b"u1", PARTITIONS)
    misplaced = harness.valid(("trace", b"x"), key=key, partition=(right + 1) % PARTITIONS, offset=9)
    await harness.process(misplaced)
    assert harness.handled == []
    assert harness.publisher.replies == []
    assert harness.dead_letters == []
    [out] = harness.publisher.sent
    assert out.topic == harness.channel.topic
    assert out.key == b"u1"
    assert out.partition == right
    assert out.value == misplaced.value
    assert out.timestamp_ms == misplaced.timestamp_ms
    assert out.headers[:-1] == misplaced.headers
    assert harness.counted("moved", topic=harness.channel.topic) == 1


@pytest.mark.parametrize(("spare", "moves"), [(1000, 1), (20, 0)])
async def test_record_that_would_not_fit_once_moved_is_refused(harness: RequestHarness, spare: int, moves: int) -> None:
    wrong = (partition_of(b"u1", PARTITIONS) + 1) % PARTITIONS
    plain = harness.valid(partition=wrong)
    padding = MAX_INPUT_BYTES - spare - size_of(Outgoing("t", plain.key, plain.value, (*plain.headers, ("pad", b""))))
    await harness.process(harness.valid(("pad", b"p" * padding), partition=wrong))
    assert len([out for out in harness.publisher.sent if out.topic == harness.channel.topic]) == moves
    assert [error["code"] for error in harness.errors] == ["too_large"] * (1 - moves)
    assert len(harness.dead_letters) == (1 - moves if harness.channel.keeps_rejected else 0)


def arrived(out: Outgoing) -> Record:
    assert out.partition is not None
    assert out.timestamp_ms is not None
    return Record(out.topic, out.partition, 77, out.timestamp_ms, out.key, out.value, out.headers)


async def moved_by(harness: RequestHarness, **changes: Any) -> Record:
    wrong = (partition_of(b"u1", PARTITIONS) + 1) % PARTITIONS
    await harness.process(harness.valid(key=b"as it was", partition=wrong, offset=9, **changes))
    return arrived(harness.publisher.sent.pop())


async def test_moved_request_is_answered_under_the_key_as_it_was_sent(harness: RequestHarness) -> None:
    await harness.process(await moved_by(harness))
    [reply] = harness.publisher.replies
    assert reply.key == b"as it was"
    assert reply.headers == (("correlation_id", b"\x00\xff"),)


async def test_dead_letter_of_a_relocated_turn_is_the_original_record(turns: RequestHarness) -> None:
    turns.problem = Rejected("unknown_mode", "no", "mode")
    moved = await moved_by(turns)
    await turns.process(moved)
    [letter] = turns.dead_letters
    headers = dict(letter.headers)
    assert letter.key == b"as it was"
    assert headers["dead_letter_offset"] == b"9"
    assert headers["dead_letter_partition"] != str(moved.partition).encode()
    assert MOVED_FROM not in headers
    assert letter.headers[: len(REPLY)] == REPLY


async def test_moved_record_that_a_tool_copied_elsewhere_is_moved_again(harness: RequestHarness) -> None:
    moved = await moved_by(harness)
    copied = Record(moved.topic, (moved.partition + 1) % PARTITIONS, 0, 0, moved.key, moved.value, moved.headers)
    await harness.process(copied)
    [out] = harness.publisher.sent
    assert out.partition == moved.partition


async def test_record_that_never_arrives_is_rejected_in_the_end(harness: RequestHarness) -> None:
    headers = [(MOVED_FROM, b"0:1:-")] * MAX_MOVES
    await harness.process(harness.valid(*headers, partition=(partition_of(b"u1", PARTITIONS) + 1) % PARTITIONS))
    assert [error["code"] for error in harness.errors] == ["internal"]
    assert harness.handled == []


@pytest.mark.parametrize("forged", [b"", b"\xff", b"1:1:A", b"1:1:AB=", b"x", b"9" * 1000, b"1:1:" + b"=" * 100])
async def test_forged_header_does_not_block_the_channel(harness: RequestHarness, forged: bytes) -> None:
    await harness.process(harness.valid((MOVED_FROM, forged)))
    assert [reply.key for reply in harness.publisher.replies] == [b"u1"]
    await harness.process(record(b"{", headers=((MOVED_FROM, forged),), topic=harness.channel.topic))
    [letter] = harness.dead_letters
    assert dict(letter.headers)[MOVED_FROM] == forged
