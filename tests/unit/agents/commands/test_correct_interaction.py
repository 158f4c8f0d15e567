"""`set_interaction_mode`: the change that it requests, and what it rejects."""

from typing import Any

import pytest
from modestream_client.vocabulary import InteractionMode

from schemas.failures import Rejected
from schemas.state.interaction import INTERACTION_MODES
from tests.harnesses.commands import CommandsHarness


@pytest.mark.parametrize("mode", INTERACTION_MODES)
async def test_command_requests_a_change_of_one_memory(harness: CommandsHarness, mode: InteractionMode) -> None:
    memory_id = harness.say("violin", 1)
    result = await harness.handle("set_interaction_mode", memory_id=memory_id, interaction_mode=mode)
    assert result.change is not None
    assert result.change.action == "correct"
    assert result.change.memory_id == memory_id
    assert result.change.interaction_mode == mode
    assert result.change.at is not None
    assert result.change.result is None, "the answer is the memory"
    assert not result.corrections, "that one counts modes"


@pytest.mark.parametrize("mode", ["DREAMING", "task", "", None, 7, ["TASK"]])
async def test_unknown_interaction_mode_is_rejected(harness: CommandsHarness, mode: object) -> None:
    memory_id = harness.say("violin", 1)
    refused = await harness.rejection("set_interaction_mode", memory_id=memory_id, interaction_mode=mode)
    assert refused == ("invalid_value", "arguments.interaction_mode")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_value"),
        ({"memory_id": 17}, "invalid_value"),
        ({"memory_id": ""}, "invalid_value"),
        ({"memory_id": "unknown"}, "not_found"),
    ],
)
async def test_unknown_memory_is_rejected(harness: CommandsHarness, arguments: dict[str, Any], code: str) -> None:
    refused = await harness.rejection("set_interaction_mode", **arguments, interaction_mode="TASK")
    assert refused == (code, "arguments.memory_id")


@pytest.mark.parametrize("scope", [{"user_id": "u2", "project_id": "p1"}, {"user_id": "u1", "project_id": "p2"}])
async def test_memory_of_another_scope_is_answered_like_a_missing_one(
    harness: CommandsHarness, scope: dict[str, str]
) -> None:
    theirs, refusals = harness.say("violin", 1, scope=scope), []
    for memory_id in (theirs, "unknown"):
        with pytest.raises(Rejected) as refused:
            await harness("set_interaction_mode", memory_id=memory_id, interaction_mode="TASK")
        refusals.append((refused.value.code, refused.value.message, refused.value.field))
    assert refusals[0] == refusals[1]
    assert refusals[0][0] == "not_found"


async def test_item_has_no_interaction_mode(harness: CommandsHarness) -> None:
    harness.say("We decided to use PostgreSQL for the ledger.", 1)
    [item] = [memory for memory in harness.memories.all() if memory.origin == "extracted"]
    refused = await harness.rejection("set_interaction_mode", memory_id=item.memory_id, interaction_mode="TASK")
    assert refused == ("invalid_value", "arguments.memory_id")
