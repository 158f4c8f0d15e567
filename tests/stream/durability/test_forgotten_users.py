"""The next user with the id of a forgotten one starts as a new user, whatever is killed or delivered again."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.rules.interaction.stability import USER_HASH_CHARS
from schemas.state.memories import hash_texts
from schemas.state.modes import ModeDeclarations
from streams.flow.steps.remember import RememberTurns
from streams.wire.partitioning import partition_of
from tests.fakes.turns_log import FakeTurnsLog
from tests.worlds.consolidation import consolidate, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message
from tests.worlds.mode_commands import chosen_mode

SECRET = "Weber"
"""A word of everything that the user has declared."""

HERE = partition_of(b"u1", 4)

DECLARATIONS = [
    command_message(
        "declare_mode",
        name="therapy",
        embedder="tiny32",
        description=f"My sessions with Dr. {SECRET}",
        extraction_hints=f"Names of {SECRET}",
        private=True,
        is_default=True,
    ),
    command_message("declare_mode", name="notes", embedder="tiny48", description=SECRET, for_project=True),
    command_message("set_default_mode", name="notes", for_project=True),
    command_message("declare_mode", name="general", embedder="tiny48", description=SECRET),
    command_message("declare_category", name="health", description=f"what {SECRET} says"),
    command_message("set_intention", goals=[f"call {SECRET}"], constraints=[f"never mention {SECRET}"]),
]
"""Commands of the user before it is forgotten."""

FORGET = command_message("forget") | {"arguments": {"user": True}}


async def declared(directory: Path) -> InMemoryPipeline:
    """Return a stopped pipeline in which u1 has declared, said and consolidated something."""
    pipeline = InMemoryPipeline(directory)
    async with pipeline.running():
        for message in DECLARATIONS:
            assert (await pipeline.ask(pipeline.names.commands, message))["status"] == "ok"
        await remember_many(pipeline, 4, "The oak in the garden is old.", mode="therapy")
        await pipeline.remember("We want to ship the beta in May.", "goal", mode="therapy")
        await pipeline.topics.settled()
        await consolidate(pipeline)
        await pipeline.topics.settled()
    return pipeline


async def ended(pipeline: InMemoryPipeline) -> None:
    """Run a pipeline until nothing is left to do."""
    async with pipeline.running():
        await pipeline.topics.settled()
        await pipeline.until(lambda: not pipeline.unfinished_vectors())


async def shown(pipeline: InMemoryPipeline, user: str) -> Mapping[str, Json]:
    commands = ("list_modes", "list_categories", "get_intention", "health")
    found = {name: (await pipeline.command(name, user))["result"] for name in commands}
    return {**found, "health": {"modes": found["health"]["modes"], "jobs": found["health"]["last_jobs"]}}


async def forgotten(pipeline: InMemoryPipeline) -> None:
    """Forget u1 and wait until all that follows is done."""
    assert (await pipeline.ask(pipeline.names.commands, FORGET))["status"] == "ok"
    await pipeline.topics.settled()


async def test_forgotten_user_is_shown_as_a_new_one(tmp_path: Path) -> None:
    async with (await declared(tmp_path)).running() as pipeline:
        await forgotten(pipeline)
        assert await shown(pipeline, "u1") == await shown(pipeline, "a new one")


async def test_turns_after_a_forget_have_the_mode_of_a_new_user(tmp_path: Path) -> None:
    async with (await declared(tmp_path)).running() as pipeline:
        await forgotten(pipeline)
        assert await chosen_mode(pipeline, "Hello.") == ("general", "fallback")


async def test_modes_of_a_forgotten_user_are_unknown(tmp_path: Path) -> None:
    async with (await declared(tmp_path)).running() as pipeline:
        await forgotten(pipeline)
        reply = await pipeline.ask(pipeline.names.turns, turn_message("Hello.", "t-new", mode="therapy"))
        assert reply["error"]["code"] == "unknown_mode"


async def test_no_table_has_what_a_forgotten_user_has_declared(tmp_path: Path) -> None:
    async with (await declared(tmp_path)).running() as pipeline:
        await forgotten(pipeline)
    names = ("modes", "issued", "consolidations", "intentions", "categories")
    rows = [str(pipeline.tables.rows(name)) for name in names]
    assert [row for row in rows if SECRET in row or "therapy" in row] == []


async def test_forgotten_user_counts_in_no_week(tmp_path: Path) -> None:
    pipeline = await declared(tmp_path)
    user = hash_texts(["u1"])[:USER_HASH_CHARS]
    assert user in pipeline.interactions.get(HERE).latest.modes
    async with pipeline.running():
        await forgotten(pipeline)
    assert user not in pipeline.interactions.get(HERE).latest.modes


async def test_what_is_declared_after_a_forget_stays(tmp_path: Path) -> None:
    pipeline = await declared(tmp_path)
    await pipeline.publish(pipeline.names.commands, FORGET)
    await pipeline.publish(pipeline.names.commands, command_message("declare_mode", name="tea", embedder="tiny32"))
    await ended(pipeline)
    assert [(mode.name, mode.description) for mode in pipeline.modes.get(HERE, "u1").modes] == [("tea", "")]


@pytest.mark.parametrize("times", [1, 2])
async def test_commands_of_before_that_are_delivered_again_declare_nothing(tmp_path: Path, times: int) -> None:
    pipeline = await declared(tmp_path)
    await pipeline.publish(pipeline.names.commands, FORGET)
    await ended(pipeline)
    for number in range(1, len(DECLARATIONS) + 2):
        for _ in range(times):
            pipeline.topics.forget_acknowledged(number, [pipeline.names.commands])
            await ended(pipeline)
        assert state(pipeline) == (ModeDeclarations(), "[]", [])


async def test_commands_of_before_and_after_that_are_delivered_again_leave_the_later_ones(tmp_path: Path) -> None:
    pipeline = await declared(tmp_path)
    await pipeline.publish(pipeline.names.commands, FORGET)
    await pipeline.publish(pipeline.names.commands, command_message("declare_mode", name="tea", embedder="tiny32"))
    await ended(pipeline)
    pipeline.topics.forget_acknowledged(len(DECLARATIONS) + 2, [pipeline.names.commands])
    await ended(pipeline)
    assert [mode.name for mode in pipeline.modes.get(HERE, "u1").modes] == ["tea"]


async def test_commands_of_before_are_no_dead_letters_when_they_are_delivered_again(tmp_path: Path) -> None:
    pipeline = await declared(tmp_path)
    await pipeline.publish(pipeline.names.commands, command_message("declare_mode", name="tea", embedder="tiny32"))
    await pipeline.publish(pipeline.names.commands, FORGET)
    await ended(pipeline)
    pipeline.topics.forget_acknowledged(2, [pipeline.names.commands])
    await ended(pipeline)
    assert pipeline.dead_letters() == []


async def test_forget_that_is_killed_anywhere_is_completed(tmp_path: Path) -> None:
    before = await declared(tmp_path / "before")
    await before.publish(before.names.commands, FORGET)
    wrong = {}
    for after in range(1000):
        pipeline = before.copy_to(tmp_path / f"killed-{after}")
        pipeline.topics.stop_after(after)
        async with pipeline.running():
            ending = asyncio.create_task(pipeline.topics.settled())
            while not (pipeline.topics.refused or ending.done()):
                await asyncio.wait([ending], timeout=0.002)
            ending.cancel()
            if not pipeline.topics.refused:
                break
        pipeline.topics.stop_after(None)
        await ended(pipeline)
        if (found := state(pipeline)) != (ModeDeclarations(), "[]", []):
            wrong[after] = found
    assert after > 2
    assert wrong == {}


async def test_forget_that_is_carried_out_twice_leaves_nothing(tmp_path: Path) -> None:
    pipeline = await declared(tmp_path)
    await pipeline.publish(pipeline.names.commands, FORGET)
    await ended(pipeline)
    # As after a kill between the write of the modes and that of the command's change.
    pipeline.lose_rows("issued")
    pipeline.topics.forget_acknowledged(1, [pipeline.names.commands])
    await ended(pipeline)
    assert state(pipeline) == (ModeDeclarations(), "[]", [])


async def test_forgotten_project_keeps_the_modes_of_its_user(tmp_path: Path) -> None:
    async with (await declared(tmp_path)).running() as pipeline:
        await pipeline.ask(pipeline.names.commands, command_message("forget") | {"arguments": {"project": True}})
        names = {mode["name"] for mode in (await pipeline.command("list_modes"))["result"]["modes"]}
        assert names == {"general", "notes", "therapy"}


async def forgotten_before_its_turns_are_applied(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch, *turns: Json
) -> None:
    """Publish turns of u1 and have it forgotten; the turns are handled when the forget waits for them."""
    pipeline.turns_log = FakeTurnsLog(ends=len(turns), given=len(turns))
    handle = RememberTurns.__call__

    async def late(step: RememberTurns, turn: Any, record: Any, options: Any) -> Any:
        await pipeline.topics.until(lambda: bool(pipeline.topics.records(pipeline.names.changes)))
        return await handle(step, turn, record, options)

    monkeypatch.setattr(RememberTurns, "__call__", late)
    async with pipeline.running():
        mode = command_message("declare_mode", name="therapy", embedder="tiny32", private=True, is_default=True)
        await pipeline.ask(pipeline.names.commands, mode)
        for turn in turns:
            await pipeline.publish(pipeline.names.turns, turn)
        await forgotten(pipeline)


TURNS_BEFORE = [
    turn_message("Dr. Weber said that I sleep too little.", "t-1"),
    turn_message("We decided to meet Dr. Weber on Monday.", "t-2", mode="therapy"),
]


async def test_turns_that_a_forget_overtakes_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    await forgotten_before_its_turns_are_applied(pipeline, monkeypatch, *TURNS_BEFORE)
    assert list(pipeline.memories.all()) == []


async def test_turns_that_a_forget_overtakes_are_no_dead_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    await forgotten_before_its_turns_are_applied(pipeline, monkeypatch, *TURNS_BEFORE)
    assert pipeline.dead_letters() == []


async def test_no_event_has_private_turns_that_a_forget_overtakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    await forgotten_before_its_turns_are_applied(pipeline, monkeypatch, *TURNS_BEFORE)
    assert [
        record for record in pipeline.topics.records(pipeline.names.remembered) if b"Weber" in (record.value or b"")
    ] == []


async def test_turns_that_a_forget_overtakes_stay_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    await forgotten_before_its_turns_are_applied(pipeline, monkeypatch, *TURNS_BEFORE)
    async with pipeline.running():
        replies = [await pipeline.ask(pipeline.names.turns, turn) for turn in TURNS_BEFORE]
    assert [reply["warnings"][0]["code"] for reply in replies] == ["forgotten", "forgotten"]


def state(pipeline: InMemoryPipeline) -> tuple[ModeDeclarations, str, list[Any]]:
    """Return what is left of u1: modes, set goals, categories, memories."""
    scope = {"user_id": "u1", "project_id": "default"}
    goals = [goal.text for goal in pipeline.intentions.get(HERE, scope).goals]
    categories = [*pipeline.categories.get(HERE, scope).categories]
    return pipeline.modes.get(HERE, "u1"), str(goals), [*categories, *pipeline.memories.all()]
