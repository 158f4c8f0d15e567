"""Arguments that a command does not have: ignored, and named by a warning wherever the command is answered."""

import pytest

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json
from tests.worlds.mode_commands import declare, remember_turn

COMMANDS: list[tuple[str, Json]] = [
    ("declare_mode", {"name": "notes", "embedder": "tiny32"}),
    ("set_default_mode", {"name": "general"}),
    ("rename_mode", {"name": "code", "new_name": "programs"}),
    ("declare_category", {"name": "birds", "description": "what flies"}),
    ("set_intention", {"goals": ["ship"]}),
    ("get_intention", {}),
    ("list_modes", {}),
    ("list_runs", {}),
    ("forget", {"conversation_id": "c1"}),
    ("backfill", {}),
    ("refresh", {}),
    ("health", {}),
]
"""Commands that are answered by each of the steps, with valid arguments."""


@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=[command for command, _ in COMMANDS])
async def test_unknown_argument_is_named_by_a_warning(
    pipeline: InMemoryPipeline, command: str, arguments: Json
) -> None:
    await declare(pipeline, "code")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    reply = await pipeline.command(command, colour="red", **arguments)
    [warning] = [warning for warning in reply["warnings"] if warning["code"] == "unknown_argument"]
    assert "'colour'" in warning["message"]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=[command for command, _ in COMMANDS])
async def test_known_arguments_are_no_warning(pipeline: InMemoryPipeline, command: str, arguments: Json) -> None:
    await declare(pipeline, "code")
    reply = await pipeline.command(command, **arguments)
    assert "unknown_argument" not in [warning["code"] for warning in reply["warnings"]]


async def test_warning_of_many_unknown_arguments_is_short(pipeline: InMemoryPipeline) -> None:
    arguments: Json = {f"{number}{'x' * 1000}": 1 for number in range(1000)}
    reply = await pipeline.command("health", **arguments)
    assert len(reply["warnings"][0]["message"]) < 2500
