"""Commands on memories: results, changes and rejections."""

from typing import Any

import pytest

from schemas.failures import Rejected
from schemas.internal.changes import Change
from schemas.scopes import Scope
from schemas.state.modes import GENERAL
from tests.harnesses.commands import PARTITION, CommandsHarness


async def test_get_memory_shows_the_record_with_evidence_and_versions(harness: CommandsHarness) -> None:
    harness.say("violin", 1)
    memory_id = harness.say("cello", 2, speaker="Ana")
    shown = await harness("get_memory", memory_id=memory_id)
    assert shown["memory_id"] == memory_id
    assert shown["text"] == "cello"
    assert shown["version"] == 2
    assert shown["speaker"] == "Ana"
    assert shown["scope"] == {"user_id": "u1", "project_id": "p1"}
    assert shown["occurred_at"] == "2026-03-01T09:30:00.001000Z"
    assert [(version["version"], version["current"]) for version in shown["versions"]] == [(1, False), (2, True)]
    assert shown["evidence"] == [{"turn_id": "t", "start": 0, "end": 5}]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_value"),
        ({"memory_id": 17}, "invalid_value"),
        ({"memory_id": ""}, "invalid_value"),
        ({"memory_id": "unknown"}, "not_found"),
        ({"memory_id": "\x00" * 100_000}, "not_found"),
    ],
)
@pytest.mark.parametrize(("command", "more"), [("get_memory", {}), ("set_memory_mode", {"mode": GENERAL})])
async def test_commands_on_unknown_memories_are_rejected(
    harness: CommandsHarness, command: str, more: dict[str, str], arguments: dict[str, Any], code: str
) -> None:
    assert await harness.rejection(command, **arguments, **more) == (code, "arguments.memory_id")


@pytest.mark.parametrize("scope", [{"user_id": "u2", "project_id": "p1"}, {"user_id": "u1", "project_id": "p2"}])
@pytest.mark.parametrize(("command", "more"), [("get_memory", {}), ("set_memory_mode", {"mode": GENERAL})])
async def test_memory_of_another_scope_is_not_found(
    harness: CommandsHarness, scope: dict[str, str], command: str, more: dict[str, str]
) -> None:
    memory_id = harness.say("violin", 1, scope=scope)
    refused = await harness.rejection(command, memory_id=memory_id, **more)
    assert refused == ("not_found", "arguments.memory_id")


async def test_memory_is_found_in_whichever_project_has_it(harness: CommandsHarness) -> None:
    memory_id = harness.say("violin", 1, scope={"user_id": "u1", "project_id": "p2"})
    found = await harness("get_memory", memory_id=memory_id, any_project=True)
    assert found["scope"] == {"user_id": "u1", "project_id": "p2"}


async def test_memory_of_another_user_is_in_no_project(harness: CommandsHarness) -> None:
    memory_id = harness.say("violin", 1, scope={"user_id": "u2", "project_id": "p1"})
    refused = await harness.rejection("get_memory", memory_id=memory_id, any_project=True)
    assert refused == ("not_found", "arguments.memory_id")


@pytest.mark.parametrize(("permitted", "is_found"), [(("p1", "p2"), True), (("p1",), False)])
async def test_memory_is_found_in_projects_of_the_senders_grants(
    harness: CommandsHarness, permitted: tuple[str, ...], is_found: bool
) -> None:
    memory_id = harness.say("violin", 1, scope={"user_id": "u1", "project_id": "p2"})
    harness.permitted = permitted
    if is_found:
        assert await harness("get_memory", memory_id=memory_id, any_project=True)
    else:
        refused = await harness.rejection("get_memory", memory_id=memory_id, any_project=True)
        assert refused == ("not_found", "arguments.memory_id")


async def test_set_memory_mode_moves_a_memory(harness: CommandsHarness) -> None:
    memory_id = harness.say("violin", 1)
    await harness("declare_mode", name="code", embedder="tiny32")
    result = await harness.handle("set_memory_mode", memory_id=memory_id, mode="code")
    change = result.change
    assert change is not None
    assert change.action == "move"
    assert change.memory_id == memory_id
    assert change.to == "code"
    assert change.result is None
    assert result.corrections == {GENERAL: 1}
    refused = await harness.rejection("set_memory_mode", memory_id=memory_id, mode="gone")
    assert refused == ("unknown_mode", "arguments.mode")


async def test_several_memories_move_by_one_change(harness: CommandsHarness) -> None:
    ids = [harness.say(text, offset, turn_id=text) for offset, text in enumerate(("violin", "cello", "drum"), 1)]
    foreign = harness.say("flute", 4, turn_id="flute", scope={"user_id": "u1", "project_id": "p2"})
    await harness("declare_mode", name="code", embedder="tiny32")
    named = [ids[0], "unknown", ids[1], foreign, ids[0]]
    result = await harness.handle("set_memory_mode", memory_ids=named, mode="code")
    scope = Scope(user_id="u1", project_id="p1")
    expected = Change(scope=scope, action="move", memory_ids=tuple(ids[:2]), to="code", result={"moved": 0})
    assert result.change == expected
    assert result.corrections == {GENERAL: 2}
    assert harness.declarations().corrections == 2


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ({"memory_ids": ["unknown", "m"]}, ("not_found", "arguments.memory_ids")),
        ({"memory_ids": []}, ("invalid_value", "arguments.memory_ids")),
        ({"memory_ids": ["m", ""]}, ("invalid_value", "arguments.memory_ids.1")),
        ({"memory_ids": "m"}, ("invalid_value", "arguments.memory_ids")),
        ({"memory_ids": [str(number) for number in range(501)]}, ("too_large", "arguments.memory_ids")),
        ({"memory_ids": ["m"], "memory_id": "m"}, ("invalid_value", "arguments.memory_id")),
    ],
)
async def test_invalid_list_of_memories_is_rejected(
    harness: CommandsHarness, arguments: dict[str, Any], refused: tuple[str, str]
) -> None:
    assert await harness.rejection("set_memory_mode", **arguments, mode=GENERAL) == refused


async def test_repeated_command_counts_one_correction(harness: CommandsHarness) -> None:
    memory_id = harness.say("violin", 1)
    await harness("declare_mode", name="code", embedder="tiny32")
    for _ in range(2):
        result = await harness.handle("set_memory_mode", "p1", 7, memory_id=memory_id, mode="code")
        assert result.change is not None
    assert not result.corrections
    assert harness.declarations().corrections == 1
    await harness.handle("set_memory_mode", "p1", 8, memory_id=memory_id, mode="code")
    assert harness.declarations().corrections == 2


async def test_confirming_a_mode_is_no_correction(harness: CommandsHarness) -> None:
    memory_id = harness.say("violin", 1)
    result = await harness.handle("set_memory_mode", memory_id=memory_id, mode=GENERAL)
    assert result.change is not None, "the caller has set it"
    assert not result.corrections
    assert harness.declarations().corrections == 0


async def test_health_command_calls_its_port(harness: CommandsHarness) -> None:
    assert await harness("health") == {"of": "u1"}


@pytest.mark.parametrize("command", ["fly", "__class__", "get_memory ", "x" * 1_000_000])
async def test_another_command_is_unknown_and_the_known_ones_are_named(harness: CommandsHarness, command: str) -> None:
    with pytest.raises(Rejected) as refused:
        await harness(command)
    assert refused.value.code == "unknown_command"
    assert refused.value.field == "command"
    assert "list_modes" in refused.value.message
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    ("arguments", "selects"),
    [
        ({"conversation_id": "c1"}, {"conversation_id": "c1"}),
        ({"project": True}, {"whole": "project"}),
        ({"user": True}, {"whole": "user"}),
        ({"memory_id": "m"}, {"memory_id": "m"}),
    ],
)
async def test_forget_takes_one_selector(
    harness: CommandsHarness, arguments: dict[str, Any], selects: dict[str, Any]
) -> None:
    change = await harness.change("forget", **arguments)
    scope = Scope(user_id="u1", project_id="p1")
    assert change == Change(scope=scope, action="forget", result={"forgotten": 0}, **selects)


async def test_forget_finds_a_turn_with_a_derived_id_by_its_conversation(harness: CommandsHarness) -> None:
    known, derived = harness.say("violin", 1), harness.say("cello", 2, turn_id=None)
    memory = harness.memories.get(PARTITION, derived)
    assert memory is not None
    for turn_id, memory_id in (("t", known), (memory.turn_id, derived)):
        change = await harness.change("forget", turn_id=turn_id, conversation_id="c1")
        assert change is not None
        assert change.memory_id == memory_id


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"turn_id": "t"},
        {"memory_id": "m", "turn_id": "t", "conversation_id": "c1"},
        {"memory_id": "m", "conversation_id": "c1"},
        {"project": True, "user": True},
        {"user": False},
        {"user": True, "project": False},
        {"user": 1},
        {"project": 1.0},
        {"project": "true"},
        {"memory_id": ""},
        {"memory_id": 7},
    ],
)
async def test_forget_rejects_none_and_several_selectors(harness: CommandsHarness, arguments: dict[str, Any]) -> None:
    code, field = await harness.rejection("forget", **arguments)
    assert code == "invalid_value"
    assert field is not None
    assert field.startswith("arguments")
    assert not field.endswith(".")
