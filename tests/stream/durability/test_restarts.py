"""A pipeline that is killed between any two records reaches the same state after a restart.

This also holds if a part of its disk is lost meanwhile.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest

from schemas.models.language import Profiles
from schemas.state.memories import derive_memory_id, unsearchable_index_name
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.wire.partitioning import partition_of
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline, Lost
from tests.worlds.in_memory_requests import Json, command_message, turn_message

HERE = partition_of(b"u1", 1)
MODES = [("code", "tiny32"), ("code", "tiny48"), ("craft", "tiny32"), ("journal", "tiny48"), ("general", "general")]
TEXTS = {f"t-{number}": f"Crate {number} is in the hall." for number in range(3)}
IDS = {
    derive_memory_id({"user_id": "u1", "project_id": "default"}, "c1", entry): entry
    for entry in (*TEXTS, "t-else", "t-new")
}

RUN_ON = [0.0, 0.15]
"""Seconds that a pipeline runs after its last write before the kill: none, or enough to have
committed and acknowledged all finished records."""

TIME_TO_END = 10.0
"""Timeout in seconds, a hundred times the usual duration: other work may keep the machine busy."""

COMMANDS = {
    "rename": command_message("rename_mode", name="code", new_name="craft"),
    "delete and forget": command_message("delete_mode", name="code", memories="forget"),
    "delete and move": command_message("delete_mode", name="code", memories="move:journal"),
    "another embedder": command_message("declare_mode", name="code", embedder="tiny48"),
    "hide one": command_message("set_memory_visibility", memory_id=next(iter(IDS)), searchable=False, private=True),
    "hide a mode": command_message("declare_mode", name="code", embedder="tiny32", searchable=False),
    "move one": command_message("set_memory_mode", memory_id=next(iter(IDS)), mode="journal"),
}


IN_TWO_REGISTERS = (
    "We moved the ledger to Postgres, and I feel exhausted. [[journal]] [[item:I feel exhausted:code]]"
    " [[item:We moved the ledger to Postgres:journal]]"
)
"""A turn with items in its own mode and in another one."""


async def prepared(directory: Path, profiles: Profiles | None = None, *said: str) -> InMemoryPipeline:
    """Return a stopped pipeline with three embedded turns in `code` and one elsewhere, and turns in any mode."""
    pipeline = InMemoryPipeline(directory, 1, profiles=profiles or Profiles())
    async with pipeline.running():
        await pipeline.command("declare_mode", name="code", embedder="tiny32", is_default=True)
        await pipeline.command("declare_mode", name="journal", embedder="tiny48")
        for turn_id, text in TEXTS.items():
            await pipeline.remember(text, turn_id)
        await pipeline.remember("Of another mode.", "t-else", mode="general")
        for text in said:
            await pipeline.remember(text, "t-new")
        await finished(pipeline)
    return pipeline


async def finished(pipeline: InMemoryPipeline) -> None:
    def done() -> bool:
        memories = list(pipeline.memories.all())
        settled = ("ready", "not_applicable")
        return all(memory.embedding.status in settled and memory.reading.status != "pending" for memory in memories)

    await pipeline.topics.settled()
    await pipeline.until(done)
    # Lost vectors, and the counts of users that the topic lacks, are written beside the events.
    await pipeline.until(lambda: not (pipeline.unfinished_vectors() or pipeline.uncounted_partitions()))
    await pipeline.topics.settled()


async def killed(pipeline: InMemoryPipeline, after: int, run_on: float) -> bool:
    """Run a pipeline until it has written `after` records; return whether it has more to write."""
    pipeline.topics.stop_after(after)
    async with pipeline.running():
        ending = asyncio.create_task(finished(pipeline))
        while not (pipeline.topics.refused or ending.done()):
            await asyncio.wait([ending], timeout=0.002)
        await asyncio.sleep(run_on)
        ending.cancel()
        refused = pipeline.topics.refused
    pipeline.topics.stop_after(None)
    return refused


async def state(pipeline: InMemoryPipeline) -> Json:
    """Return all state without times: records, tombstones, vectors and lexical index."""
    return {
        "records": {
            memory.text: (
                *(
                    memory.mode,
                    memory.mode_source,
                    memory.embedding.status,
                    memory.embedding.place,
                    memory.reading.status,
                ),
                *(memory.visibility, memory.own_visibility),
            )
            for memory in pipeline.memories.all()
        },
        "forgotten": {IDS[each] for each in IDS if pipeline.memories.is_forgotten(HERE, each)},
        "vectors": {
            (mode, embedder): named(await pipeline.vectors_in(mode, pipeline.space(mode, embedder).fingerprint, [*IDS]))
            for mode, embedder in MODES
        },
        "words": words_of(pipeline),
        "declared": pipeline.modes.get(HERE, "u1"),
    }


def words_of(pipeline: InMemoryPipeline) -> Json:
    words = SqliteLexicalIndex(pipeline.directory / "partitions")
    words.open(HERE)
    columns = words.memory_columns(HERE, "u1")
    modes = [kind.mode for kind in columns.kinds]
    found = {
        "modes": {
            IDS[memory_id]: modes[columns.columns.kinds[number]] for memory_id, number in columns.number_of.items()
        },
        "counts": words.counts(HERE, "u1"),
        "places": words.ready_places(HERE),
        "unread": named(words.awaiting_understanding(HERE)),
        "hidden": named(words.memory_columns(HERE, unsearchable_index_name("u1")).number_of),
        "crates": len(words.postings(HERE, "u1", ["crate"])[0].numbers),
    }
    words.close()
    return found


def named(ids: Iterable[str]) -> list[str]:
    return sorted(IDS[memory_id] for memory_id in ids)


async def ended(pipeline: InMemoryPipeline) -> Json:
    async with pipeline.running():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(finished(pipeline), TIME_TO_END)
    return await state(pipeline)


async def assert_kills_change_nothing(before: InMemoryPipeline, directory: Path, run_on: float, *lost: Lost) -> None:
    expected = await ended(before.copy_to(directory / "undisturbed"))
    wrong: dict[tuple[int, str], tuple[object, object]] = {}
    for after in count():
        pipeline = before.copy_to(directory / f"killed-{after}")
        if not await killed(pipeline, after, run_on):
            break
        pipeline.lose_files(*lost)
        found = await ended(pipeline)
        wrong |= {(after, name): (found[name], expected[name]) for name in expected if found[name] != expected[name]}
    assert after > 2, "the pipeline writes records"
    assert wrong == {}


@pytest.mark.parametrize("run_on", RUN_ON)
@pytest.mark.parametrize("name", COMMANDS)
async def test_interrupted_command_completes_on_the_next_run(tmp_path: Path, name: str, run_on: float) -> None:
    before = await prepared(tmp_path / "before")
    await before.publish(before.names.commands, COMMANDS[name])
    await assert_kills_change_nothing(before, tmp_path, run_on)


@pytest.mark.parametrize(
    "following",
    [
        command_message("rename_mode", name="tea", new_name="coffee"),
        command_message("delete_mode", name="tea", memories="forget"),
        command_message("set_default_mode", name="code"),
        command_message("declare_mode", name="tea", embedder="tiny48", description="Leaves."),
    ],
    ids=["rename", "delete", "default", "declare"],
)
async def test_redelivered_declaration_undoes_no_later_command(tmp_path: Path, following: Json) -> None:
    pipeline = await prepared(tmp_path)
    await pipeline.publish(
        pipeline.names.commands, command_message("declare_mode", name="tea", embedder="tiny32", is_default=True)
    )
    await pipeline.publish(pipeline.names.commands, following)
    expected = await ended(pipeline)
    pipeline.topics.forget_acknowledged(2, [pipeline.names.commands])
    assert (await ended(pipeline))["declared"] == expected["declared"]


@pytest.mark.parametrize("run_on", RUN_ON)
async def test_model_moves_survive_outages_and_kills(tmp_path: Path, run_on: float) -> None:
    before = await prepared(tmp_path / "before", ONE_PROFILE)
    await before.publish(before.names.turns, turn_message("A quiet day [[journal]].", "t-new"))
    await assert_kills_change_nothing(before, tmp_path, run_on)


@pytest.mark.parametrize("run_on", RUN_ON)
async def test_models_registers_survive_outages_and_kills(tmp_path: Path, run_on: float) -> None:
    before = await prepared(tmp_path / "before", ONE_PROFILE)
    await before.publish(before.names.turns, turn_message(IN_TWO_REGISTERS, "t-new"))
    await assert_kills_change_nothing(before, tmp_path, run_on)


@pytest.mark.parametrize("name", ["rename", "delete and move", "delete and forget", "hide one", "hide a mode"])
async def test_interrupted_command_completes_for_items_in_two_registers(tmp_path: Path, name: str) -> None:
    before = await prepared(tmp_path / "before", ONE_PROFILE, IN_TWO_REGISTERS)
    await before.publish(before.names.commands, COMMANDS[name])
    await assert_kills_change_nothing(before, tmp_path, RUN_ON[0])


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("rename", ["vectors", "words"]),
        ("delete and forget", ["words"]),
        ("delete and move", ["words"]),
        # Former vectors that are lost are not made again: test_model_change.py loses vectors.
        ("another embedder", ["words"]),
    ],
)
async def test_interrupted_command_completes_after_a_partial_disk_loss(
    tmp_path: Path, name: str, lost: list[Lost]
) -> None:
    before = await prepared(tmp_path / "before")
    await before.publish(before.names.commands, COMMANDS[name])
    await assert_kills_change_nothing(before, tmp_path, RUN_ON[0], *lost)


async def test_interrupted_turn_has_its_vector_after_a_disk_loss(tmp_path: Path) -> None:
    before = await prepared(tmp_path / "before", ONE_PROFILE)
    await before.publish(before.names.turns, turn_message("A quiet day [[journal]].", "t-new"))
    await assert_kills_change_nothing(before, tmp_path, RUN_ON[1], "vectors", "words")


DENTIST, RENT = "My dentist appointment is on Tuesday.", "My rent is 900 euros a month."
CATEGORIES = {
    name: command_message("declare_category", name=name, description=description)
    for name, description in (("health", "dentist appointment"), ("money", "rent, euros a month"))
}
CATEGORY_COMMANDS = {
    "rename": command_message("rename_category", name="health", new_name="body"),
    "delete": command_message("delete_category", name="health"),
    "forget": command_message("forget") | {"arguments": {"user": True}},
}


async def categorised(directory: Path, *following: Json) -> InMemoryPipeline:
    """Return a stopped pipeline with two filled categories, and these commands before it."""
    pipeline = InMemoryPipeline(directory, 1)
    async with pipeline.running():
        for declaration in CATEGORIES.values():
            await pipeline.ask(pipeline.names.commands, declaration)
        for text in (DENTIST, RENT):
            await pipeline.remember(text, text)
        await finished(pipeline)
    for command in following:
        await pipeline.publish(pipeline.names.commands, command)
    return pipeline


async def categories_after(pipeline: InMemoryPipeline) -> Json:
    """Run a pipeline to its end; return its categories, the items in them, and those that records and words name."""
    async with pipeline.running():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(finished(pipeline), TIME_TO_END)
    memories = [memory for memory in pipeline.memories.all() if memory.item]
    named = {taken.text: [filed.name for filed in taken.item.categories] for taken in memories if taken.item}
    words = SqliteLexicalIndex(pipeline.directory / "partitions")
    words.open(HERE)
    postings = words.category_postings(HERE, "u1//items", ["health", "body", "money"])
    words.close()
    scopes = pipeline.categories.scopes(HERE, "u1")
    stored = {
        name: category.description
        for each in scopes
        for name, category in pipeline.categories.get(HERE, each).categories.items()
    }
    return {"stored": stored, "items": named, "words": [len(posting.numbers) for posting in postings]}


@pytest.mark.parametrize("run_on", RUN_ON)
@pytest.mark.parametrize("name", CATEGORY_COMMANDS)
async def test_interrupted_category_command_completes_on_the_next_run(tmp_path: Path, name: str, run_on: float) -> None:
    before = await categorised(tmp_path / "before", CATEGORY_COMMANDS[name])
    expected = await categories_after(before.copy_to(tmp_path / "undisturbed"))
    assert "health" not in expected["stored"]
    wrong = {}
    for after in count():
        pipeline = before.copy_to(tmp_path / f"killed-{after}")
        if not await killed(pipeline, after, run_on):
            break
        if (found := await categories_after(pipeline)) != expected:
            wrong[after] = found
    assert after > 0, "the pipeline writes records"
    assert wrong == {}


@pytest.mark.parametrize("name", CATEGORY_COMMANDS)
async def test_redelivered_category_commands_end_in_the_same_state(tmp_path: Path, name: str) -> None:
    new = command_message("declare_category", name="tea", description="Leaves.")
    gone = command_message("delete_category", name="tea")
    pipeline = await categorised(tmp_path, CATEGORIES["health"], new, gone, CATEGORY_COMMANDS[name])
    expected = await categories_after(pipeline)
    assert {"health", "tea"}.isdisjoint(expected["stored"])
    for number in range(1, 5):
        pipeline.topics.forget_acknowledged(number, [pipeline.names.commands])
        assert await categories_after(pipeline) == expected


@pytest.mark.parametrize("name", CATEGORY_COMMANDS)
async def test_category_command_executed_twice_ends_in_the_same_state(tmp_path: Path, name: str) -> None:
    pipeline = await categorised(tmp_path, CATEGORY_COMMANDS[name])
    expected = await categories_after(pipeline)
    # As after a kill between the write of the categories and that of the command's change.
    pipeline.lose_rows("issued")
    pipeline.topics.forget_acknowledged(1, [pipeline.names.commands])
    changes = len(pipeline.topics.records(pipeline.names.changes))
    assert await categories_after(pipeline) == expected
    assert len(pipeline.topics.records(pipeline.names.changes)) == changes + 1, "it was executed, not refused"
