"""Exactly one thing happens to every record that others write."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest

from agents.admit import Admit
from agents.rules.partitioning import partition_of
from agents.rules.placement import MOST_MOVES, MOVED_FROM
from schemas.commands import Command
from schemas.failures import Rejected, Unavailable
from schemas.policies import Policy
from schemas.records import Headers, Outgoing, Record
from schemas.replies import Answer, Warned
from schemas.turns import Turn
from streams.adapters.authorization.policy_file import PolicyFile
from streams.flow.requests import Asked, Channel, Handled, Requests
from streams.watching.metrics import Meters
from tests.fake_clock import FakeClock
from tests.fake_publisher import FakePublisher
from tests.made_turns import PARTITIONS, record, turn_fields

TURNS = Channel("memory.turns", {"turn.v1": Turn}, "write", keeps_rejected=True, outlives_deadline=True)
COMMANDS = Channel("memory.commands", {"command.v1": Command}, "manage")
CONCURRENT = Channel("memory.commands", {"command.v1": Command}, "manage", concurrent=True)
COMMAND = {"schema": "command.v1", "command": "do", "scope": {"user_id": "u1"}}
OPEN = Admit()
EVENT = Outgoing("memory.remembered", b"u1", b"event")
CHANNELS = {"turns": TURNS, "commands": COMMANDS, "concurrent": CONCURRENT}


class Served:
    """One channel, with a handler that does what it is told."""

    def __init__(self, channel: Channel, admit: Admit = OPEN) -> None:
        self.publisher = FakePublisher()
        self.clock = FakeClock()
        self.meters = Meters()
        self.channel = channel
        self.handled: list[tuple[Record, Asked]] = []
        self.result: Handled = Handled(Answer({"done": True}))
        self.problem: Exception | None = None
        self._requests = Requests(
            channel=channel,
            handle=self._handle,
            partitions=PARTITIONS,
            replies="memory.replies",
            dead_letters="memory.dead-letters",
            publisher=self.publisher,
            clock=self.clock,
            meters=self.meters,
            admit=admit,
        )

    async def _handle(self, _message: Any, taken: Record, asked: Asked) -> Handled:
        self.handled.append((taken, asked))
        if self.problem is not None:
            raise self.problem
        return self.result

    def valid(self, *headers: tuple[str, bytes], **changes: Any) -> Record:
        """A valid record of this channel, which asks for a reply."""
        value = turn_fields() if self.channel is TURNS else COMMAND
        return record(value, topic=self.channel.topic, headers=(*REPLY, *headers), **changes)

    async def take(self, taken: Record) -> None:
        """Serve a record to its end."""
        await (await self.begin(taken))

    async def begin(self, taken: Record) -> Awaitable[object]:
        """Serve a record as far as order demands."""
        return await self._requests.begin(taken)

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The errors that were replied."""
        return [json.loads(reply.value or b"")["error"] for reply in self.publisher.replies]

    @property
    def letters(self) -> list[Outgoing]:
        """The dead letters."""
        return self.publisher.to("memory.dead-letters")

    def counted(self, name: str, **labels: str) -> float:
        """How often a meter moved."""
        return self.meters.registry.get_sample_value(f"modestream_{name}_total", labels) or 0


REPLY: Headers = (("reply_to", b"memory.replies.app"), ("correlation_id", b"\x00\xff"), ("reply_partition", b"2"))


@pytest.fixture(params=CHANNELS)
def served(request: pytest.FixtureRequest) -> Served:
    return Served(CHANNELS[request.param])


@pytest.fixture
def turns() -> Served:
    return Served(TURNS)


@pytest.fixture
def commands() -> Served:
    return Served(COMMANDS)


async def test_a_valid_request_is_handled_and_answered_with_its_own_key_and_correlation(served: Served) -> None:
    served.result = Handled(Answer({"n": 1}, (Warned("late", "a bit"),)), [EVENT])
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


async def test_who_asks_for_no_reply_gets_none(served: Served) -> None:
    await served.take(served.valid())
    quiet = record(served.valid().value, topic=served.channel.topic)
    await served.take(quiet)
    assert (len(served.handled), len(served.publisher.replies)) == (2, 1)


async def test_a_reply_that_is_lost_costs_the_request_nothing(served: Served) -> None:
    served.publisher.lost = True
    await served.take(served.valid())
    assert (len(served.handled), served.letters) == (1, [])


async def test_a_request_is_finished_when_its_events_and_tables_are_written_and_not_before(served: Served) -> None:
    table = asyncio.Event()
    served.result = Handled(Answer({}), [EVENT], [table.wait()])
    served.publisher.hold()
    taking = asyncio.create_task(served.take(served.valid()))
    for let_go in (served.publisher.release, table.set):
        for _ in range(20):
            await asyncio.sleep(0)
        assert not taking.done()
        let_go()
    await taking


@pytest.mark.parametrize("key", [None, b"", b"another", b"\xff"])
async def test_a_record_in_the_wrong_partition_is_moved_unseen(served: Served, key: bytes | None) -> None:
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


async def moved_by(served: Served, **changes: Any) -> Record:
    """A record of this channel after it was moved."""
    wrong = (partition_of(b"u1", PARTITIONS) + 1) % PARTITIONS
    await served.take(served.valid(key=b"as it was", partition=wrong, offset=9, **changes))
    return arrived(served.publisher.sent.pop())


async def test_a_moved_request_is_answered_under_the_key_as_it_was_sent(served: Served) -> None:
    await served.take(await moved_by(served))
    [reply] = served.publisher.replies
    assert (reply.key, reply.headers) == (b"as it was", (("correlation_id", b"\x00\xff"),))


async def test_the_dead_letter_of_a_moved_turn_is_that_of_the_record_as_it_was_sent(turns: Served) -> None:
    turns.problem = Rejected("unknown_mode", "no", "mode")
    moved = await moved_by(turns)
    await turns.take(moved)
    [letter] = turns.letters
    told = dict(letter.headers)
    assert (letter.key, told["dead_letter_offset"]) == (b"as it was", b"9")
    assert told["dead_letter_partition"] != str(moved.partition).encode()
    assert MOVED_FROM not in told
    assert letter.headers[: len(REPLY)] == REPLY


async def test_a_moved_record_that_a_tool_copied_elsewhere_is_moved_again(served: Served) -> None:
    moved = await moved_by(served)
    copied = Record(moved.topic, (moved.partition + 1) % PARTITIONS, 0, 0, moved.key, moved.value, moved.headers)
    await served.take(copied)
    [out] = served.publisher.sent
    assert out.partition == moved.partition


async def test_a_record_that_never_arrives_is_refused_in_the_end(served: Served) -> None:
    headers = [(MOVED_FROM, b"0:1:-")] * MOST_MOVES
    await served.take(served.valid(*headers, partition=(partition_of(b"u1", PARTITIONS) + 1) % PARTITIONS))
    assert [error["code"] for error in served.errors] == ["internal"]
    assert served.handled == []


@pytest.mark.parametrize("forged", [b"", b"\xff", b"1:1:A", b"1:1:AB=", b"x", b"9" * 1000, b"1:1:" + b"=" * 100])
async def test_a_forged_header_stops_nobody(served: Served, forged: bytes) -> None:
    await served.take(served.valid((MOVED_FROM, forged)))
    assert [reply.key for reply in served.publisher.replies] == [b"u1"]
    await served.take(record(b"{", headers=((MOVED_FROM, forged),), topic=served.channel.topic))
    [letter] = served.letters
    assert (MOVED_FROM, forged) in letter.headers


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"schema":"turn.v2"}', b'{"schema":"command.v1"}'])
async def test_what_cannot_be_read_is_answered_and_only_a_turn_is_a_dead_letter_beside(
    served: Served, value: bytes | None
) -> None:
    bad = record(value, topic=served.channel.topic, headers=REPLY)
    await served.take(bad)
    assert served.handled == []
    assert len(served.errors) == 1
    assert served.publisher.replies[0].headers == (("correlation_id", b"\x00\xff"),)
    assert [letter.value for letter in served.letters] == ([value] if served.channel is TURNS else [])


async def test_what_cannot_be_read_and_asks_for_no_reply_is_a_dead_letter(served: Served) -> None:
    await served.take(record(b"{", key=None, topic=served.channel.topic))
    [letter] = served.letters
    assert (letter.key, letter.value, dict(letter.headers)["dead_letter_code"]) == (None, b"{", b"invalid_json")
    assert served.counted("rejected", topic=served.channel.topic, code="invalid_json") == 1


async def test_a_refusal_by_the_handler_is_told_with_its_field(served: Served) -> None:
    served.problem = Rejected("not_found", "there is none", "arguments.memory_id")
    await served.take(served.valid())
    assert served.errors == [{"code": "not_found", "message": "there is none", "field": "arguments.memory_id"}]
    assert len(served.letters) == (served.channel is TURNS)


async def test_a_refusal_whose_reply_is_lost_is_no_dead_letter(commands: Served) -> None:
    commands.publisher.lost = True
    commands.problem = Rejected("not_found", "there is none")
    await commands.take(commands.valid())
    assert commands.letters == []


async def test_a_defect_of_the_handler_is_an_internal_error_that_gives_nothing_away(served: Served) -> None:
    served.problem = KeyError("a secret text")
    await served.take(served.valid())
    [error] = served.errors
    assert error["code"] == "internal"
    assert "secret" not in error["message"]
    assert len(served.letters) == (served.channel is TURNS)


async def test_an_answer_that_cannot_be_written_is_an_internal_error(served: Served) -> None:
    served.result = Handled(Answer({"a": object()}), [EVENT])
    await served.take(served.valid())
    assert [error["code"] for error in served.errors] == ["internal"]


@pytest.mark.parametrize("channel", [COMMANDS, CONCURRENT])
async def test_what_is_unavailable_is_told_to_try_again(channel: Channel) -> None:
    served = Served(channel)
    served.problem = Unavailable("the index is away")
    await served.take(served.valid())
    [error] = served.errors
    assert (error["code"], served.letters) == ("unavailable", [])
    assert "the index is away" in error["message"]


async def test_a_turn_is_not_refused_because_something_is_unavailable(turns: Served) -> None:
    turns.problem = Unavailable("the disk is full")
    with pytest.raises(Unavailable):
        await turns.take(turns.valid())
    assert (turns.publisher.replies, turns.publisher.sent) == ([], [])


@pytest.mark.parametrize("topic", [b"memory.turns", b"", b"\xff", b"memory.replies.\n"])
async def test_a_reply_topic_that_is_not_allowed_gets_nothing_and_nothing_is_done(served: Served, topic: bytes) -> None:
    forbidden = record(served.valid().value, topic=served.channel.topic, headers=(("reply_to", topic),))
    await served.take(forbidden)
    assert (served.handled, served.publisher.replies) == ([], [])
    [letter] = served.letters
    assert dict(letter.headers)["dead_letter_code"] == b"reply_topic_refused"
    assert served.publisher.sent == [letter]


@pytest.mark.parametrize("header", [("deadline", b"soon"), ("reply_partition", b"x")])
async def test_a_header_that_cannot_be_read_is_told_to_the_sender(commands: Served, header: tuple[str, bytes]) -> None:
    sent = record(COMMAND, topic="memory.commands", headers=(("reply_to", b"memory.replies"), header))
    await commands.take(sent)
    assert [(error["code"], error["field"]) for error in commands.errors] == [("invalid_value", f"headers.{header[0]}")]
    assert commands.publisher.replies[0].partition is None
    assert commands.handled == []


def at(clock: FakeClock, seconds: float) -> tuple[str, bytes]:
    """A deadline so many seconds from now."""
    return "deadline", str(round((clock.now().timestamp() + seconds) * 1000)).encode()


async def test_a_request_before_its_deadline_is_handled_and_knows_it(served: Served) -> None:
    await served.take(served.valid(at(served.clock, 1)))
    [(_, asked)] = served.handled
    assert asked.deadline_ms == round((served.clock.now().timestamp() + 1) * 1000)
    assert len(served.publisher.replies) == 1


@pytest.mark.parametrize("channel", [COMMANDS, CONCURRENT])
async def test_a_request_past_its_deadline_is_dropped_and_counted(channel: Channel) -> None:
    served = Served(channel)
    await served.take(served.valid(at(served.clock, -1)))
    assert (served.handled, served.publisher.replies, served.publisher.sent) == ([], [], [])
    assert served.counted("expired", topic=channel.topic) == 1


async def test_a_turn_past_its_deadline_is_stored_without_a_reply(turns: Served) -> None:
    turns.result = Handled(Answer({}), [EVENT])
    await turns.take(turns.valid(at(turns.clock, -1)))
    [(_, asked)] = turns.handled
    assert asked == Asked()
    assert (turns.publisher.replies, turns.publisher.sent) == ([], [EVENT])
    assert turns.counted("expired", topic="memory.turns") == 1


async def test_a_bad_turn_past_its_deadline_is_a_dead_letter_without_a_reply(turns: Served) -> None:
    await turns.take(record(b"{", headers=(*REPLY, at(turns.clock, -1))))
    assert (turns.publisher.replies, len(turns.letters)) == ([], 1)


async def test_what_changes_something_is_handled_in_order_and_what_does_not_need_not_be() -> None:
    for channel, handled_at_once in ((TURNS, True), (COMMANDS, True), (CONCURRENT, False)):
        served = Served(channel)
        finishing = await served.begin(served.valid())
        assert bool(served.handled) is handled_at_once, channel
        await finishing
        assert len(served.handled) == 1


async def test_a_publisher_that_breaks_is_no_reason_to_acknowledge(served: Served) -> None:
    served.result = Handled(Answer({}), [EVENT])
    served.publisher.broken = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await served.take(served.valid())


ANA_WRITES = Policy.model_validate({"principals": {"app": [{"user_id": "u1", "may": ["write"]}]}})


@pytest.mark.parametrize(("principal", "allowed"), [(b"app", True), (b"other", False), (b"\xff", False), (None, False)])
async def test_a_turn_that_its_sender_may_not_write_is_a_dead_letter_and_its_sender_is_told(
    principal: bytes | None, *, allowed: bool
) -> None:
    served = Served(TURNS, Admit(PolicyFile(ANA_WRITES)))
    taken = served.valid(*(() if principal is None else (("principal", principal),)))
    await served.take(taken)
    assert len(served.handled) == allowed
    [reply] = served.publisher.replies
    assert (b"not_allowed" in (reply.value or b"")) is not allowed
    assert [letter.value for letter in served.letters] == ([] if allowed else [taken.value])


async def test_a_command_needs_more_than_writing() -> None:
    served = Served(COMMANDS, Admit(PolicyFile(ANA_WRITES)))
    await served.take(served.valid(("principal", b"app")))
    assert (served.handled, [error["code"] for error in served.errors]) == ([], ["not_allowed"])


async def test_what_only_we_write_is_not_asked_for_its_principal() -> None:
    internal = Channel("memory.changes", {"command.v1": Command}, None)
    served = Served(internal, Admit(PolicyFile(Policy(principals={}))))
    await served.take(served.valid())
    assert len(served.handled) == 1
