import json

import pytest

from agents.rules.memory.versions import identify_turn
from operations.copy.entry_builder import Entry, EntryBuilder, LeftOut, Log
from schemas.messages.decoding import decode
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.scope_models import deployed_scope
from schemas.scopes import Scope
from schemas.state.memories import derive_memory_id
from streams.wire.archived_turns import FORGOTTEN_TEXT
from streams.wire.partitioning import MOVED_FROM, partition_of
from tests.builders.scopes import AgentScope

PARTITION = partition_of(b"ana", 4)
TIME_MS = 1_780_000_000_123


def record(message: object, partition: int = PARTITION, headers: tuple[tuple[str, bytes | None], ...] = ()) -> Record:
    return Record("memory.turns", partition, 17, TIME_MS, b"ana", json.dumps(message).encode(), headers)


def turn(**fields: object) -> dict[str, object]:
    base = {"schema": "turn.v1", "scope": {"user_id": "ana"}, "conversation_id": "c", "role": "user"}
    return {**base, "content": "The kettle is blue.", **fields}


def command(name: str, **arguments: object) -> dict[str, object]:
    return {"schema": "command.v1", "command": name, "scope": {"user_id": "ana"}, "arguments": arguments}


def builder(*forgotten: str, target: type[Scope] = Scope) -> EntryBuilder:
    return EntryBuilder(4, Scope, target, frozenset(forgotten))


def memory_id(value: bytes, timestamp_ms: int = TIME_MS, model: type[Turn] = Turn) -> str:
    return identify_turn(decode(value, {"turn.v1": model}), moment_of(timestamp_ms)).memory_id


def built(builder: EntryBuilder, log: Log, read: Record) -> Entry:
    entry = builder.build(log, read)
    assert isinstance(entry, Entry)
    return entry


def test_turn_keeps_value_time_and_headers_of_its_own() -> None:
    kept = (("principal", b"gateway"), ("empty", None))
    delivery = (("reply_to", b"memory.replies"), ("kafka_correlationId", b"1"), ("deadline", b"1"), (MOVED_FROM, b"x"))
    read = record(turn(), headers=(*kept, *delivery))
    entry = built(builder(), "turns", read)
    assert entry.value == read.value
    assert entry.timestamp_ms == TIME_MS
    assert entry.boundary == "ana"
    assert entry.headers == (*kept, ("modestream_copied_from", f"{PARTITION}:17".encode()))


@pytest.mark.parametrize("fields", [{}, {"turn_id": "t-1"}, {"occurred_at": "2026-03-01T09:30:00Z"}])
def test_forgotten_turn_keeps_its_identity_and_nothing_that_was_said(fields: dict[str, object]) -> None:
    read = record(turn(speaker="Ana", metadata={"secret": 1}, mode="journal", **fields))
    forgotten = memory_id(read.value or b"")
    entry = built(builder(forgotten), "turns", read)
    assert entry.is_forgotten
    assert memory_id(entry.value, timestamp_ms=0) == forgotten
    left = json.loads(entry.value)
    assert left["content"] == FORGOTTEN_TEXT
    assert left["mode"] == "journal"
    assert not {"metadata", "speaker", "resources"} & left.keys()


@pytest.mark.parametrize(
    ("log", "read", "why"),
    [
        ("turns", record({"schema": "turn.v1"}), "invalid"),
        ("turns", record(turn(), partition=(PARTITION + 1) % 4), "misplaced"),
        ("commands", record(command("list_modes")), "derived"),
        ("commands", record(command("rebuild")), "derived"),
    ],
)
def test_what_is_left_out_says_why(log: Log, read: Record, why: str) -> None:
    assert builder().build(log, read) == LeftOut(why)


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_new_scope_fields_are_added_and_commands_name_the_new_ids(*, is_forgotten: bool) -> None:
    said = record(turn())
    former_id = memory_id(said.value or b"")
    both = builder(*[former_id] * is_forgotten, target=deployed_scope(AgentScope))
    entry = built(both, "turns", said)
    value = json.loads(entry.value)
    assert value["scope"]["agent_id"] == "main"
    assert value["turn_id"].startswith("derived-")
    moved = json.loads(built(both, "commands", record(command("forget", memory_id=former_id))).value)
    assert moved["scope"] == value["scope"]
    assert moved["arguments"]["memory_id"] == derive_memory_id(value["scope"], "c", value["turn_id"])


def test_intention_of_a_whole_user_is_copied() -> None:
    intention = command("set_intention", goals=["ship it"])
    read = record({**intention, "scope": {"user_id": "ana", "project_id": "*"}})
    assert built(builder(), "commands", read).value == read.value


def test_intention_of_a_whole_user_is_copied_into_scopes_with_further_fields() -> None:
    read = record({**command("set_intention"), "scope": {"user_id": "ana", "project_id": "*"}})
    value = json.loads(built(builder(target=deployed_scope(AgentScope)), "commands", read).value)
    assert value["scope"]["project_id"] == "*"


def renaming(chosen: frozenset[str] | None = None) -> EntryBuilder:
    return EntryBuilder(4, Scope, Scope, renamed={"user_id": "ana-trial"}, chosen=chosen)


def test_renamed_user_gets_the_turn_under_its_key() -> None:
    assert built(renaming(), "turns", record(turn())).boundary == "ana-trial"


def test_renamed_user_keeps_the_derived_id_of_a_turn() -> None:
    said = record(turn())
    of_ana = identify_turn(decode(said.value, {"turn.v1": Turn}), moment_of(TIME_MS))
    assert json.loads(built(renaming(), "turns", said).value)["turn_id"] == of_ana.turn_id


def test_renamed_user_keeps_the_scope_of_a_command_on_all_projects() -> None:
    read = record({**command("set_intention"), "scope": {"user_id": "ana", "project_id": "*"}})
    scope = json.loads(built(renaming(), "commands", read).value)["scope"]
    assert scope == {"user_id": "ana-trial", "project_id": "*"}


def test_turn_that_is_not_chosen_is_left_out() -> None:
    assert renaming(frozenset()).build("turns", record(turn())) == LeftOut("left out")
