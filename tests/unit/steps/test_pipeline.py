"""Every request ends exactly once: as a reply, a rejection or a dead letter."""

import asyncio
import base64
import json

import pytest

from schemas.failures import Rejected, Unavailable
from schemas.messages.replies import ReplyWarning, SuccessReply
from streams.flow.requests.channel import Channel, HandlerResult
from streams.topics import MAX_OUTPUT_BYTES
from streams.wire.dead_letters import FILLER_HEADER, FILLER_VALUE, size_of
from streams.wire.partitioning import MOVED_FROM
from tests.builders.turns import record
from tests.harnesses.requests import COMMAND, COMMANDS, CONCURRENT, EVENT, REPLY, TURNS, RequestHarness


async def test_valid_request_is_answered_with_its_key_and_correlation(harness: RequestHarness) -> None:
    harness.result = HandlerResult(SuccessReply({"n": 1}, (ReplyWarning("late", "a bit"),)), [EVENT])
    await harness.process(harness.valid(("trace", b"x")))
    assert len(harness.handled) == 1
    assert harness.publisher.sent == [EVENT]
    [reply] = harness.publisher.replies
    assert reply.topic == "memory.replies.app"
    assert reply.partition == 2
    assert reply.key == b"u1"
    assert reply.headers == (("correlation_id", b"\x00\xff"),), "and no other header of the request"
    assert json.loads(reply.value or b"") == {
        "schema": "reply.v1",
        "status": "ok",
        "result": {"n": 1},
        "warnings": [{"code": "late", "message": "a bit"}],
    }
    assert harness.counted("handled", topic=harness.channel.topic) == 1


async def test_request_without_reply_headers_gets_no_reply(harness: RequestHarness) -> None:
    await harness.process(harness.valid())
    quiet = record(harness.valid().value, topic=harness.channel.topic)
    await harness.process(quiet)
    assert len(harness.handled) == 2
    assert len(harness.publisher.replies) == 1


async def test_lost_reply_does_not_affect_the_request(harness: RequestHarness) -> None:
    harness.publisher.lost = True
    await harness.process(harness.valid())
    assert len(harness.handled) == 1
    assert harness.dead_letters == []


async def test_request_finishes_after_its_events_and_tables_are_written(harness: RequestHarness) -> None:
    table = asyncio.Event()
    harness.result = HandlerResult(SuccessReply({}), [EVENT], [table.wait()])
    harness.publisher.hold()
    taking = asyncio.create_task(harness.process(harness.valid()))
    for let_go in (harness.publisher.release, table.set):
        for _ in range(20):
            await asyncio.sleep(0)
        assert not taking.done()
        let_go()
    await taking


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"schema":"turn.v2"}', b'{"schema":"command.v1"}'])
async def test_unreadable_request_is_answered_and_only_turns_are_dead_letters(
    harness: RequestHarness, value: bytes | None
) -> None:
    bad = record(value, topic=harness.channel.topic, headers=REPLY)
    await harness.process(bad)
    assert harness.handled == []
    assert len(harness.errors) == 1
    assert harness.publisher.replies[0].headers == (("correlation_id", b"\x00\xff"),)
    assert [letter.value for letter in harness.dead_letters] == ([value] if harness.channel is TURNS else [])


async def test_unreadable_request_without_reply_is_a_dead_letter(harness: RequestHarness) -> None:
    await harness.process(record(b"{", key=None, topic=harness.channel.topic))
    [letter] = harness.dead_letters
    assert letter.key is None
    assert letter.value == b"{"
    assert dict(letter.headers)["dead_letter_code"] == b"invalid_json"
    assert harness.counted("rejected", topic=harness.channel.topic, code="invalid_json") == 1


async def test_rejection_by_the_handler_has_its_field(harness: RequestHarness) -> None:
    harness.problem = Rejected("not_found", "there is none", "arguments.memory_id")
    await harness.process(harness.valid())
    assert harness.errors == [{"code": "not_found", "message": "there is none", "field": "arguments.memory_id"}]
    assert len(harness.dead_letters) == (harness.channel is TURNS)


async def test_rejection_with_a_lost_reply_is_no_dead_letter(commands: RequestHarness) -> None:
    commands.publisher.lost = True
    commands.problem = Rejected("not_found", "there is none")
    await commands.process(commands.valid())
    assert commands.dead_letters == []


async def test_handler_defect_is_an_internal_error_without_details(harness: RequestHarness) -> None:
    harness.problem = KeyError("a secret text")
    await harness.process(harness.valid())
    [error] = harness.errors
    assert error["code"] == "internal"
    assert "secret" not in error["message"]
    assert len(harness.dead_letters) == (harness.channel is TURNS)


async def test_answer_that_cannot_be_written_is_an_internal_error(harness: RequestHarness) -> None:
    harness.result = HandlerResult(SuccessReply({"a": object()}), [EVENT])
    await harness.process(harness.valid())
    assert [error["code"] for error in harness.errors] == ["internal"]


async def test_too_large_answer_is_an_error_after_the_work_is_done(harness: RequestHarness) -> None:
    for bytes_, errors in ((MAX_OUTPUT_BYTES - 1000, 0), (MAX_OUTPUT_BYTES, 1)):
        harness.result = HandlerResult(SuccessReply({"a": "a" * bytes_}), [EVENT])
        await harness.process(harness.valid())
        assert size_of(harness.publisher.replies[-1]) <= MAX_OUTPUT_BYTES
        assert harness.publisher.replies[-1].headers == (("correlation_id", b"\x00\xff"),)
        assert harness.publisher.sent.count(EVENT) == 1 + errors
    assert [json.loads(reply.value or b"")["status"] for reply in harness.publisher.replies] == ["ok", "error"]
    assert b"too_large" in (harness.publisher.replies[-1].value or b"")


async def test_key_of_the_request_counts_as_a_part_of_the_reply(harness: RequestHarness) -> None:
    harness.result = HandlerResult(SuccessReply({"a": "a" * (MAX_OUTPUT_BYTES - 1000)}))
    original = base64.b64encode(b"k" * 2000)
    await harness.process(harness.valid((MOVED_FROM, b"1:2:" + original)))
    [reply] = harness.publisher.replies
    assert reply.key == b"k" * 2000
    assert [error["code"] for error in harness.errors] == ["too_large"]
    assert size_of(reply) <= MAX_OUTPUT_BYTES


@pytest.mark.parametrize("channel", [COMMANDS, CONCURRENT])
async def test_unavailable_error_asks_to_retry(channel: Channel) -> None:
    harness = RequestHarness(channel)
    harness.problem = Unavailable("the index is away")
    await harness.process(harness.valid())
    [error] = harness.errors
    assert error["code"] == "unavailable"
    assert harness.dead_letters == []
    assert "the index is away" in error["message"]


async def test_turn_is_not_refused_because_something_is_unavailable(turns: RequestHarness) -> None:
    turns.problem = Unavailable("the disk is full")
    with pytest.raises(Unavailable):
        await turns.process(turns.valid())
    assert turns.publisher.replies == []
    assert turns.publisher.sent == []


@pytest.mark.parametrize("topic", [b"memory.turns", b"", b"\xff", b"memory.replies.\n"])
async def test_request_with_a_forbidden_reply_topic_is_not_handled(harness: RequestHarness, topic: bytes) -> None:
    forbidden = record(harness.valid().value, topic=harness.channel.topic, headers=(("reply_to", topic),))
    await harness.process(forbidden)
    assert harness.handled == []
    assert harness.publisher.replies == []
    [letter] = harness.dead_letters
    assert dict(letter.headers)["dead_letter_code"] == b"reply_topic_refused"
    assert harness.publisher.sent == [letter]


@pytest.mark.parametrize("header", [("deadline", b"soon"), ("reply_partition", b"x")])
async def test_unreadable_header_is_reported_to_the_sender(commands: RequestHarness, header: tuple[str, bytes]) -> None:
    sent = record(COMMAND, topic="memory.commands", headers=(("reply_to", b"memory.replies"), header))
    await commands.process(sent)
    assert [(error["code"], error["field"]) for error in commands.errors] == [("invalid_value", f"headers.{header[0]}")]
    assert commands.publisher.replies[0].partition is None
    assert commands.handled == []


async def test_changing_requests_run_in_order_and_reading_ones_may_not() -> None:
    for channel, handled_at_once in ((TURNS, True), (COMMANDS, True), (CONCURRENT, False)):
        harness = RequestHarness(channel)
        finishing = await harness.begin(harness.valid())
        assert bool(harness.handled) is handled_at_once, channel
        await finishing
        assert len(harness.handled) == 1


async def test_publisher_failure_does_not_acknowledge(harness: RequestHarness) -> None:
    harness.result = HandlerResult(SuccessReply({}), [EVENT])
    harness.publisher.broken = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await harness.process(harness.valid())


async def test_filler_is_passed_over_without_a_trace(harness: RequestHarness) -> None:
    topic = harness.channel.topic
    await harness.process(record(FILLER_VALUE, topic=topic, key=None, headers=((FILLER_HEADER, b""), *REPLY)))
    assert harness.handled == []
    assert harness.publisher.sent == []
    assert harness.publisher.replies == []


async def test_header_of_a_filler_alone_hides_no_request(harness: RequestHarness) -> None:
    await harness.process(harness.valid((FILLER_HEADER, b"")))
    assert len(harness.handled) == len(harness.publisher.replies) == 1


@pytest.mark.parametrize("channel", [COMMANDS, CONCURRENT])
async def test_request_that_meets_a_lack_of_memory_may_be_sent_again(channel: Channel) -> None:
    harness = RequestHarness(channel)
    harness.problem = MemoryError()
    await harness.process(harness.valid())
    assert [error["code"] for error in harness.errors] == ["unavailable"]


async def test_turn_that_meets_a_lack_of_memory_is_no_dead_letter(turns: RequestHarness) -> None:
    turns.problem = MemoryError()
    with pytest.raises(MemoryError):
        await turns.process(turns.valid())
    assert turns.publisher.replies == []
    assert turns.publisher.sent == []
