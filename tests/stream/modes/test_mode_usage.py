"""How each mode was used, by week, as `health` shows it."""

from pathlib import Path
from typing import Any

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message
from tests.worlds.mode_commands import declare, remember_turn

WEEK_S = 7 * 86_400


async def weeks(pipeline: InMemoryPipeline) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = (await pipeline.command("health"))["result"]["telemetry"]["weeks"]
    return shown


async def test_a_week_has_memories_questions_and_corrections_of_each_mode(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    accepted = await remember_turn(pipeline, "The parser made me cry.", mode="code")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    await pipeline.retrieve("parser", mode="code")
    await pipeline.retrieve("parser", mode="*")
    await pipeline.assemble("parser", mode="code")
    await pipeline.command("set_memory_mode", memory_id=accepted["memory_id"], mode="general")
    [week] = await weeks(pipeline)
    unused = {"useful": 0, "not_useful": 0}
    assert week["modes"]["code"] == {
        "memories": 1,
        "questions": 3,
        "cross_mode_questions": 1,
        "corrections": 1,
        **unused,
    }
    assert week["modes"]["general"]["memories"] == 1


async def test_history_outlives_a_kill(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await pipeline.retrieve("parser")
        await pipeline.usage.store(range(pipeline.partitions))
    async with pipeline.running():
        await pipeline.retrieve("parser")
        [week] = await weeks(pipeline)
    assert week["modes"]["general"]["questions"] == 2


async def test_a_new_week_is_another_row(pipeline: InMemoryPipeline) -> None:
    await pipeline.retrieve("parser")
    pipeline.clock.forward(WEEK_S)
    await pipeline.retrieve("parser")
    first, second = await weeks(pipeline)
    assert first["week"] == "2026-02-23"
    assert second["week"] == "2026-03-02"


async def test_history_follows_a_renamed_mode(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    await pipeline.retrieve("parser", mode="code")
    await pipeline.command("rename_mode", name="code", new_name="craft")
    [week] = await weeks(pipeline)
    assert week["modes"]["craft"]["questions"] == 1


async def test_a_forgotten_user_has_no_history(pipeline: InMemoryPipeline) -> None:
    await remember_turn(pipeline, "Fixed the parser.")
    await pipeline.retrieve("parser")
    await pipeline.ask(pipeline.names.commands, command_message("forget") | {"arguments": {"user": True}})
    assert await weeks(pipeline) == []
