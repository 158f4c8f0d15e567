"""Exactly one thing happens to every record that others write: it is answered, refused or a dead letter."""

import asyncio
import json

import pytest

from schemas.failures import Rejected, Unavailable
from schemas.messages.replies import ReplyWarning, SuccessReply
from streams.flow.requests.channel import Channel, HandlerResult
from streams.flow.requests.replies import MAX_REPLY_BYTES
from tests.builders.turns import record
from tests.harnesses.requests import COMMAND, COMMANDS, CONCURRENT, EVENT, REPLY, TURNS, RequestHarness


async def test_valid_request_is_answered_with_its_key_and_correlation(served: RequestHarness) -> None:
    served.result = HandlerResult(SuccessReply({"n": 1}, (ReplyWarning("late", "a bit"),)), [EVENT])
    await served.take(served.valid(("trace", b"x")))
    assert len(served.handled) == 1
    assert served.publisher.sent == [EVENT]
    [reply] = served.publisher.replies
    assert (reply.topic, reply.partition, reply.key) == ("memory.replies.app", 2, b"u1")
    assert reply.headers == (("correlation_id", b"\x00\xff"),), "and no other header of the request"
    assert json.loads(reply.value or b"") == {
        "schema": "reply.v1",
        "status": "ok",
        "result": {"n": 1},
        "warnings": [{"code": "late", "message": "a bit"}],
    }
    assert served.counted("handled", topic=served.channel.topic) == 1


async def test_who_asks_for_no_reply_gets_none(served: RequestHarness) -> None:
    await served.take(served.valid())
    quiet = record(served.valid().value, topic=served.channel.topic)
    await served.take(quiet)
    assert (len(served.handled), len(served.publisher.replies)) == (2, 1)


async def test_a_reply_that_is_lost_costs_the_request_nothing(served: RequestHarness) -> None:
    served.publisher.lost = True
    await served.take(served.valid())
    assert (len(served.handled), served.letters) == (1, [])


async def test_request_finishes_after_its_events_and_tables_are_written(served: RequestHarness) -> None:
    table = asyncio.Event()
    served.result = HandlerResult(SuccessReply({}), [EVENT], [table.wait()])
    served.publisher.hold()
    taking = asyncio.create_task(served.take(served.valid()))
    for let_go in (served.publisher.release, table.set):
        for _ in range(20):
            await asyncio.sleep(0)
        assert not taking.done()
        let_go()
    await taking


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"schema":"turn.v2"}', b'{"schema":"command.v1"}'])
async def test_unreadable_request_is_answered_and_only_turns_are_dead_letters(
    served: RequestHarness, value: bytes | None
) -> None:
    bad = record(value, topic=served.channel.topic, headers=REPLY)
    await served.take(bad)
    assert served.handled == []
    assert len(served.errors) == 1
    assert served.publisher.replies[0].headers == (("correlation_id", b"\x00\xff"),)
    assert [letter.value for letter in served.letters] == ([value] if served.channel is TURNS else [])


async def test_what_cannot_be_read_and_asks_for_no_reply_is_a_dead_letter(served: RequestHarness) -> None:
    await served.take(record(b"{", key=None, topic=served.channel.topic))
    [letter] = served.letters
    assert (letter.key, letter.value, dict(letter.headers)["dead_letter_code"]) == (None, b"{", b"invalid_json")
    assert served.counted("rejected", topic=served.channel.topic, code="invalid_json") == 1


async def test_a_refusal_by_the_handler_is_told_with_its_field(served: RequestHarness) -> None:
    served.problem = Rejected("not_found", "there is none", "arguments.memory_id")
    await served.take(served.valid())
    assert served.errors == [{"code": "not_found", "message": "there is none", "field": "arguments.memory_id"}]
    assert len(served.letters) == (served.channel is TURNS)


async def test_a_refusal_whose_reply_is_lost_is_no_dead_letter(commands: RequestHarness) -> None:
    commands.publisher.lost = True
    commands.problem = Rejected("not_found", "there is none")
    await commands.take(commands.valid())
    assert commands.letters == []


async def test_handler_defect_is_an_internal_error_without_details(served: RequestHarness) -> None:
    served.problem = KeyError("a secret text")
    await served.take(served.valid())
    [error] = served.errors
    assert error["code"] == "internal"
    assert "secret" not in error["message"]
    assert len(served.letters) == (served.channel is TURNS)


async def test_an_answer_that_cannot_be_written_is_an_internal_error(served: RequestHarness) -> None:
    served.result = HandlerResult(SuccessReply({"a": object()}), [EVENT])
    await served.take(served.valid())
    assert [error["code"] for error in served.errors] == ["internal"]


async def test_too_large_answer_is_an_error_after_the_work_is_done(served: RequestHarness) -> None:
    for bytes_, errors in ((MAX_REPLY_BYTES - 1000, 0), (MAX_REPLY_BYTES, 1)):
        served.result = HandlerResult(SuccessReply({"a": "a" * bytes_}), [EVENT])
        await served.take(served.valid())
        assert len(served.publisher.replies[-1].value or b"") <= MAX_REPLY_BYTES
        assert served.publisher.replies[-1].headers == (("correlation_id", b"\x00\xff"),)
        assert served.publisher.sent.count(EVENT) == 1 + errors
    assert [json.loads(reply.value or b"")["status"] for reply in served.publisher.replies] == ["ok", "error"]
    assert b"too_large" in (served.publisher.replies[-1].value or b"")


@pytest.mark.parametrize("channel", [COMMANDS, CONCURRENT])
async def test_what_is_unavailable_is_told_to_try_again(channel: Channel) -> None:
    served = RequestHarness(channel)
    served.problem = Unavailable("the index is away")
    await served.take(served.valid())
    [error] = served.errors
    assert (error["code"], served.letters) == ("unavailable", [])
    assert "the index is away" in error["message"]


async def test_a_turn_is_not_refused_because_something_is_unavailable(turns: RequestHarness) -> None:
    turns.problem = Unavailable("the disk is full")
    with pytest.raises(Unavailable):
        await turns.take(turns.valid())
    assert (turns.publisher.replies, turns.publisher.sent) == ([], [])


@pytest.mark.parametrize("topic", [b"memory.turns", b"", b"\xff", b"memory.replies.\n"])
async def test_refused_reply_topic_gets_nothing_and_nothing_is_done(served: RequestHarness, topic: bytes) -> None:
    forbidden = record(served.valid().value, topic=served.channel.topic, headers=(("reply_to", topic),))
    await served.take(forbidden)
    assert (served.handled, served.publisher.replies) == ([], [])
    [letter] = served.letters
    assert dict(letter.headers)["dead_letter_code"] == b"reply_topic_refused"
    assert served.publisher.sent == [letter]


@pytest.mark.parametrize("header", [("deadline", b"soon"), ("reply_partition", b"x")])
async def test_a_header_that_cannot_be_read_is_told_to_the_sender(
    commands: RequestHarness, header: tuple[str, bytes]
) -> None:
    sent = record(COMMAND, topic="memory.commands", headers=(("reply_to", b"memory.replies"), header))
    await commands.take(sent)
    assert [(error["code"], error["field"]) for error in commands.errors] == [("invalid_value", f"headers.{header[0]}")]
    assert commands.publisher.replies[0].partition is None
    assert commands.handled == []


async def test_changing_requests_run_in_order_and_reading_ones_may_not() -> None:
    for channel, handled_at_once in ((TURNS, True), (COMMANDS, True), (CONCURRENT, False)):
        served = RequestHarness(channel)
        finishing = await served.begin(served.valid())
        assert bool(served.handled) is handled_at_once, channel
        await finishing
        assert len(served.handled) == 1


async def test_a_publisher_that_breaks_is_no_reason_to_acknowledge(served: RequestHarness) -> None:
    served.result = HandlerResult(SuccessReply({}), [EVENT])
    served.publisher.broken = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await served.take(served.valid())
