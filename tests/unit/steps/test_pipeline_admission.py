import threading
from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import BeforeValidator

from agents.commands.admit import Admit
from schemas.messages.commands import Command
from schemas.messages.decoding import MAX_VALUES
from schemas.messages.records import Record
from schemas.messages.replies import SuccessReply
from schemas.messages.turns import MAX_RESOURCES
from schemas.state.policies import Grant, InstalledGrants, Policy
from streams.adapters.policy_file import PolicyFile
from streams.flow.requests.channel import Channel, HandlerResult, ReplyOptions
from streams.flow.requests.pipeline import MAX_HEADERS, MAX_INLINE_BYTES
from tests.builders.turns import record, turn_fields
from tests.fakes.clock import FakeClock
from tests.harnesses.requests import COMMANDS, CONCURRENT, EVENT, REPLY, TURNS, RequestHarness


def at(clock: FakeClock, seconds: float) -> tuple[str, bytes]:
    return "deadline", str(round((clock.now().timestamp() + seconds) * 1000)).encode()


async def test_request_before_its_deadline_is_handled_and_knows_it(harness: RequestHarness) -> None:
    await harness.process(harness.valid(at(harness.clock, 1)))
    [(_, asked)] = harness.handled
    assert asked.deadline_ms == round((harness.clock.now().timestamp() + 1) * 1000)
    assert len(harness.publisher.replies) == 1


@pytest.mark.parametrize("channel", [COMMANDS, CONCURRENT])
async def test_request_past_its_deadline_is_dropped_and_counted(channel: Channel) -> None:
    harness = RequestHarness(channel)
    await harness.process(harness.valid(at(harness.clock, -1)))
    assert harness.handled == []
    assert harness.publisher.replies == []
    assert harness.publisher.sent == []
    assert harness.counted("expired", topic=channel.topic) == 1


async def test_turn_past_its_deadline_is_stored_without_a_reply(turns: RequestHarness) -> None:
    turns.result = HandlerResult(SuccessReply({}), [EVENT])
    await turns.process(turns.valid(at(turns.clock, -1)))
    [(_, asked)] = turns.handled
    assert asked == ReplyOptions()
    assert turns.publisher.replies == []
    assert turns.publisher.sent == [EVENT]
    assert turns.counted("expired", topic="memory.turns") == 1


@pytest.mark.parametrize(("age_s", "late"), [(1.9, 0), (2.1, 1)])
@pytest.mark.parametrize("set_by_s", [3700.0, 0.0])
async def test_worker_whose_clock_is_ahead_counts_from_the_end_of_the_log(
    harness: RequestHarness, age_s: float, late: int, set_by_s: float
) -> None:
    sent_ms = round(harness.clock.now().timestamp() * 1000)
    waits_2_s = harness.valid(at(harness.clock, 2), timestamp_ms=sent_ms, written_after_s=harness.clock.steady_s())
    harness.clock.forward(age_s)
    harness.clock.set(set_by_s)
    await harness.process(waits_2_s)
    assert harness.counted("expired", topic=harness.channel.topic) == late


async def test_caller_whose_clock_is_an_hour_behind_is_answered(harness: RequestHarness) -> None:
    sent_ms = round(harness.clock.now().timestamp() * 1000) - 3_600_000
    asked = harness.valid(at(harness.clock, -3598), timestamp_ms=sent_ms, written_after_s=harness.clock.steady_s())
    await harness.process(asked)
    [(_, options)] = harness.handled
    assert options.seconds_left(harness.clock) == pytest.approx(2)


@pytest.mark.parametrize("timestamp_ms", [-1, 0, 1_000_000_000_000])
async def test_time_of_day_decides_where_the_timestamp_is_that_of_an_event(
    harness: RequestHarness, timestamp_ms: int
) -> None:
    asked = harness.valid(at(harness.clock, 10), timestamp_ms=timestamp_ms, written_after_s=harness.clock.steady_s())
    harness.clock.forward(11)
    await harness.process(asked)
    assert harness.counted("expired", topic=harness.channel.topic) == 1


async def test_time_of_day_decides_where_the_age_is_unknown(harness: RequestHarness) -> None:
    asked = harness.valid(at(harness.clock, 2))
    harness.clock.set(3700)
    await harness.process(asked)
    assert harness.counted("expired", topic=harness.channel.topic) == 1


async def test_invalid_expired_turn_is_a_dead_letter_without_reply(turns: RequestHarness) -> None:
    await turns.process(record(b"{", headers=(*REPLY, at(turns.clock, -1))))
    assert turns.publisher.replies == []
    assert len(turns.dead_letters) == 1


async def test_two_principals_are_refused(turns: RequestHarness) -> None:
    await turns.process(turns.valid(("principal", b"admin"), ("principal", b"guest")))
    assert turns.handled == []
    assert [error["code"] for error in turns.errors] == ["not_allowed"]
    await turns.process(turns.valid(("principal", b"guest"), ("principal", b"guest")))
    assert len(turns.handled) == 1


@pytest.mark.parametrize("channel", [TURNS, COMMANDS])
async def test_record_of_too_many_headers_is_refused_and_answered(channel: Channel) -> None:
    harness = RequestHarness(channel)
    await harness.process(harness.valid(*[("mine", b"")] * (MAX_HEADERS - len(REPLY))))
    assert len(harness.handled) == 1
    harness.publisher.replies.clear()
    await harness.process(harness.valid(*[("mine", b"")] * MAX_HEADERS))
    assert len(harness.handled) == 1
    assert [(error["code"], error["field"]) for error in harness.errors] == [("too_large", "headers")]
    assert len(harness.dead_letters) == (channel is TURNS)


async def test_principal_behind_too_many_headers_is_refused(turns: RequestHarness) -> None:
    await turns.process(turns.valid(("principal", b"guest"), *[("mine", b"")] * MAX_HEADERS, ("principal", b"app")))
    assert turns.handled == []
    assert [error["code"] for error in turns.errors] == ["too_large"]


ANA_WRITES = Policy.model_validate({"principals": {"app": [{"user_id": "u1", "may": ["write"]}]}})


@pytest.mark.parametrize(("principal", "allowed"), [(b"app", True), (b"other", False), (b"\xff", False), (None, False)])
async def test_unauthorised_turn_is_a_dead_letter_with_an_error_reply(
    principal: bytes | None, *, allowed: bool
) -> None:
    harness = RequestHarness(TURNS, Admit(PolicyFile(ANA_WRITES)))
    received = harness.valid(*(() if principal is None else (("principal", principal),)))
    await harness.process(received)
    assert len(harness.handled) == allowed
    [reply] = harness.publisher.replies
    assert (b"not_allowed" in (reply.value or b"")) is not allowed
    assert [letter.value for letter in harness.dead_letters] == ([] if allowed else [received.value])


async def test_command_needs_more_than_writing() -> None:
    harness = RequestHarness(COMMANDS, Admit(PolicyFile(ANA_WRITES)))
    await harness.process(harness.valid(("principal", b"app")))
    assert harness.handled == []
    assert [error["code"] for error in harness.errors] == ["not_allowed"]


async def test_internal_channel_needs_no_principal() -> None:
    internal = Channel("memory.changes", {"command.v1": Command}, None)
    harness = RequestHarness(internal, Admit(PolicyFile(Policy(principals={}))))
    await harness.process(harness.valid())
    assert len(harness.handled) == 1


@pytest.mark.parametrize("channel", [TURNS, COMMANDS, CONCURRENT])
@pytest.mark.parametrize(
    "many", [b"[" + b"[]," * MAX_VALUES + b"1]", b"{" + b'"a":1,' * MAX_VALUES + b'"a":1}'], ids=["lists", "fields"]
)
async def test_record_of_too_many_values_is_refused_and_answered(channel: Channel, many: bytes) -> None:
    harness = RequestHarness(channel)
    sent = harness.valid()
    await harness.process(replace(sent, value=(sent.value or b"")[:-1] + b',"x":' + many + b"}"))
    assert harness.handled == []
    [error] = harness.errors
    assert error["code"] == "too_large"
    assert f"{MAX_VALUES} values" in error["message"]


async def test_largest_texts_are_no_values_whatever_they_hold(turns: RequestHarness) -> None:
    text = '{"a": [1, 2]}, \\" ' * 1_800
    fields = turn_fields(resources=[{"uri": f"file:///{number}", "text": text} for number in range(MAX_RESOURCES)])
    await turns.process(record(fields, headers=REPLY))
    assert len(turns.handled) == 1


class Threaded(Command):
    """Tells the thread that validated it."""

    thread: Annotated[int, BeforeValidator(lambda _: threading.get_ident())] = 0


@pytest.mark.parametrize(("chars", "is_inline"), [(1_000, True), (MAX_INLINE_BYTES, False)])
async def test_large_record_is_decoded_outside_of_the_event_loop(chars: int, is_inline: bool) -> None:
    channel, decoded = Channel("memory.commands", {"command.v1": Threaded}, "manage"), []

    async def handle(message: Threaded, _record: Record, _options: ReplyOptions) -> HandlerResult:
        decoded.append(message.thread)
        return HandlerResult(SuccessReply({}))

    harness = RequestHarness(channel)
    harness.handle = handle
    fields = {"schema": "command.v1", "command": "do", "scope": {"user_id": "u1"}, "thread": 1, "x": "x" * chars}
    await harness.process(record(fields, topic=channel.topic))
    assert [thread == threading.get_ident() for thread in decoded] == [is_inline]


class FailingDirectory:
    """Grants of a deployment's function that fails for its first calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def __call__(self, principal: str) -> list[dict[str, object]]:
        if self.failures:
            self.failures -= 1
            raise ConnectionError(principal)
        return [{"user_id": "*"}]


def guarded_by(directory: FailingDirectory, channel: Channel) -> RequestHarness:
    return RequestHarness(channel, Admit(PolicyFile(InstalledGrants(directory, Grant))))


@pytest.mark.usefixtures("short_backoff")
async def test_turn_waits_for_an_authorizer_that_fails() -> None:
    turns = guarded_by(FailingDirectory(failures=3), TURNS)
    await turns.process(turns.valid(("principal", b"ana")))
    assert len(turns.handled) == 1
    assert not turns.dead_letters


async def test_request_is_unavailable_while_the_authorizer_fails() -> None:
    commands = guarded_by(FailingDirectory(failures=1), COMMANDS)
    await commands.process(commands.valid(("principal", b"ana")))
    assert [error["code"] for error in commands.errors] == ["unavailable"]


@pytest.mark.usefixtures("short_backoff")
async def test_turn_that_is_not_granted_does_not_wait() -> None:
    turns = RequestHarness(TURNS, Admit(PolicyFile(InstalledGrants(lambda _: [], Grant))))
    await turns.process(turns.valid(("principal", b"ana")))
    assert [error["code"] for error in turns.errors] == ["not_allowed"]
