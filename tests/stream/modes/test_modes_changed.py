"""Modes through the whole pipeline: renamed, deleted, and memories moved between them."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message
from tests.worlds.mode_commands import chosen_mode, code_of, count_vectors, declare, remember_turn, search_mode

HERE = partition_of(b"u1", 4)


async def test_memories_follow_a_renamed_mode_with_their_vectors(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", is_default=True)
    for number in range(120):
        await pipeline.remember(f"Crate {number}.", f"t-{number}")
    await pipeline.topics.settled()
    model = pipeline.embedders.model("tiny32")
    passages = list(model.passages)
    reply = await pipeline.command("rename_mode", name="code", new_name="craft")
    assert reply["result"]["name"] == "craft"
    found = await pipeline.retrieve("crate", mode="craft", top_k=100)
    assert len(found["result"]["hits"]) == 100, "ok means that every later request sees its effect"
    await pipeline.topics.settled()
    assert {(memory.mode, memory.embedding.status) for memory in pipeline.memories.all()} == {("craft", "ready")}
    assert await count_vectors(pipeline) == {"craft/tiny32": 120}
    assert model.passages == passages, "vectors are moved, not made again"
    assert code_of(await pipeline.retrieve("crate", mode="code")) == "unknown_mode"
    assert await chosen_mode(pipeline, "Later.") == ("craft", "user_default")


async def test_repeated_rename_is_idempotent_and_a_taken_name_conflicts(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    await declare(pipeline, "journal")
    first = await pipeline.command("rename_mode", name="code", new_name="craft")
    assert (await pipeline.command("rename_mode", name="code", new_name="craft"))["result"] == first["result"]
    assert code_of(await pipeline.command("rename_mode", name="craft", new_name="journal")) == "conflict"
    assert code_of(await pipeline.command("rename_mode", name="gone", new_name="new")) == "unknown_mode"


async def test_repeated_turn_of_a_renamed_mode_is_a_duplicate(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    await pipeline.command("rename_mode", name="code", new_name="craft")
    again = await remember_turn(pipeline, "Fixed the parser.", mode="code")
    assert again["duplicate"] is True
    assert again["mode"] == "craft"


async def test_rename_of_a_user_mode_spares_the_project_mode(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    await pipeline.command("declare_mode", project="p1", name="code", embedder="tiny48", for_project=True)
    await remember_turn(pipeline, "Here.", mode="code", scope={"user_id": "u1", "project_id": "p1"})
    await remember_turn(pipeline, "There.", mode="code")
    await pipeline.command("rename_mode", name="code", new_name="craft")
    await pipeline.topics.settled()
    assert pipeline.memory("Here.").mode == "code"
    assert pipeline.memory("There.").mode == "craft"


async def test_deleted_modes_memories_stay_deleted_under_replay(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    for number in range(3):
        forgotten = await remember_turn(pipeline, f"Fixed parser {number}.", mode="code")
    await remember_turn(pipeline, "Kept.")
    reply = await pipeline.command("delete_mode", name="code", memories="forget")
    assert reply["result"]["forgotten"] == 3
    assert reply["result"]["moved"] == 0
    assert [hit["text"] for hit in (await pipeline.retrieve("fixed kept", mode="*"))["result"]["hits"]] == ["Kept."]
    await pipeline.topics.settled()
    assert [memory.text for memory in pipeline.memories.all()] == ["Kept."]
    assert await pipeline.index.count(pipeline.space("code", "tiny32"), HERE) == 0
    assert code_of(await pipeline.command("get_memory", memory_id=forgotten["memory_id"])) == "not_found"
    for text in ("Fixed parser 0.", "Fixed parser 0, edited."):
        replayed = await pipeline.ask(pipeline.names.turns, turn_message(text, "Fixed parser 0.", mode="code"))
        assert replayed["status"] == "ok"
        assert [warning["code"] for warning in replayed["warnings"]] == ["forgotten"]
    await pipeline.topics.settled()
    assert [memory.text for memory in pipeline.memories.all()] == ["Kept."]
    assert pipeline.dead_letters() == []


@pytest.mark.parametrize(
    "taken_back", [{"command": "delete_mode", "memories": "forget"}, {"command": "rename_mode", "new_name": "craft"}]
)
async def test_turn_during_a_mode_change_does_not_stay_in_the_mode(tmp_path: Path, taken_back: dict[str, str]) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    pipeline.turns_log = log = SlowLog(pipeline)
    async with pipeline.running():
        await declare(pipeline, "code")
        await remember_turn(pipeline, "Before.", mode="code")
        log.meanwhile.append("Meanwhile.")
        assert (await pipeline.command(name="code", **taken_back))["status"] == "ok"
        await pipeline.topics.settled()
        assert {memory.mode for memory in pipeline.memories.all()} <= {"craft"}


@dataclass
class SlowLog:
    """A log of turns; while its end is read, more turns arrive in the mode `code`."""

    pipeline: InMemoryPipeline
    meanwhile: list[str] = field(default_factory=list)

    async def end(self, partition: int) -> int:
        ended = sum(record.partition == partition for record in self.pipeline.topics.records(self.pipeline.names.turns))
        while self.meanwhile:
            text = self.meanwhile.pop()
            await self.pipeline.ask(self.pipeline.names.turns, turn_message(text, text, mode="code"))
        return ended

    async def end_with_transactions(self, partition: int) -> int:
        """Return the end: there are no transactions."""
        return await self.end(partition)

    def is_assigned(self, partition: int) -> bool:
        return True

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        """Return True: turns are delivered as they are written."""
        return True


async def test_forgotten_turns_stay_forgotten_in_a_recreated_mode(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    await pipeline.command("delete_mode", name="code", memories="forget")
    await declare(pipeline, "code", "tiny48")
    replayed = await pipeline.ask(
        pipeline.names.turns, turn_message("Fixed the parser.", "Fixed the parser.", mode="code")
    )
    assert [warning["code"] for warning in replayed["warnings"]] == ["forgotten"]
    await remember_turn(pipeline, "A new one.", mode="code")
    assert await search_mode(pipeline, "code", "parser new one") == ["A new one."]


async def test_memories_of_a_deleted_mode_can_be_moved_into_another_space(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", "tiny32", is_default=True)
    await declare(pipeline, "journal", "tiny48")
    await remember_turn(pipeline, "To be moved.")
    reply = await pipeline.command("delete_mode", name="code", memories="move:journal")
    assert reply["result"]["moved"] == 1
    assert await search_mode(pipeline, "journal", "moved") == ["To be moved."]
    assert await count_vectors(pipeline) == {"journal/tiny48": 1}
    assert await chosen_mode(pipeline, "Later.") == ("general", "fallback")


@pytest.mark.parametrize("memories", [None, "burn", "move:none-such", "move:code"])
async def test_deleting_needs_a_word_about_the_memories(pipeline: InMemoryPipeline, memories: str | None) -> None:
    await declare(pipeline, "code")
    more = {} if memories is None else {"memories": memories}
    assert code_of(await pipeline.command("delete_mode", name="code", **more)) in ("invalid_value", "unknown_mode")
    assert await chosen_mode(pipeline, "Still there.", mode="code") == ("code", "caller")


async def test_set_memory_mode_moves_a_memory_permanently(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", "tiny32")
    await declare(pipeline, "journal", "tiny48", decay="slow")
    accepted = await remember_turn(pipeline, "The parser made me cry.", mode="code")
    reply = await pipeline.command("set_memory_mode", memory_id=accepted["memory_id"], mode="journal")
    shown = reply["result"]
    assert shown["memory_id"] == accepted["memory_id"]
    assert shown["mode"] == "journal"
    assert shown["mode_source"] == "caller"
    assert await search_mode(pipeline, "journal", "parser") == ["The parser made me cry."]
    assert await search_mode(pipeline, "code", "parser") == []
    assert await count_vectors(pipeline) == {"journal/tiny48": 1}
    assert pipeline.memory("The parser made me cry.").decay == "slow"
    again = await remember_turn(pipeline, "The parser made me cry.", mode="code")
    assert again["duplicate"] is True
    assert again["mode"] == "journal"
    edited = await pipeline.ask(
        pipeline.names.turns, turn_message("The parser made me laugh.", "The parser made me cry.")
    )
    assert edited["result"]["mode"] == "journal", "an edit does not undo a correction"
    telemetry = (await pipeline.command("health"))["result"]["telemetry"]
    assert telemetry["corrections"] == 1
    assert telemetry["corrections_per_hundred"] == 100.0


async def test_move_to_the_same_mode_is_no_correction_and_keeps_the_vector(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    accepted = await remember_turn(pipeline, "Fixed the parser.", mode="code")
    reply = await pipeline.command("set_memory_mode", memory_id=accepted["memory_id"], mode="code")
    assert reply["result"]["mode"] == "code"
    await pipeline.topics.settled()
    assert len(pipeline.topics.records(pipeline.names.remembered)) == 1
    assert (await pipeline.command("health"))["result"]["telemetry"]["corrections"] == 0


async def test_several_memories_are_moved_at_once(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "journal", "tiny48")
    texts = [f"Crate {number} is in the hall." for number in range(5)]
    ids = [(await remember_turn(pipeline, text))["memory_id"] for text in texts]
    for _ in range(2):
        reply = await pipeline.command("set_memory_mode", memory_ids=[*ids[:3], "unknown"], mode="journal")
        assert reply["result"] == {"moved": 3}
    await pipeline.topics.settled()
    assert set(await search_mode(pipeline, "journal", "crate", top_k=100)) == set(texts[:3])
    assert set(await search_mode(pipeline, "general", "crate", top_k=100)) == set(texts[3:])
    assert (await count_vectors(pipeline))["journal/tiny48"] == 3
    assert {memory.mode_source for memory in pipeline.memories.all() if memory.mode == "journal"} == {"caller"}
    assert (await pipeline.command("health"))["result"]["telemetry"]["corrections"] == 3


async def test_set_memory_mode_rejects_unknown_modes_and_other_users(pipeline: InMemoryPipeline) -> None:
    accepted = await remember_turn(pipeline, "Tea.")
    unknown = await pipeline.command("set_memory_mode", memory_id=accepted["memory_id"], mode="none-such")
    other = await pipeline.command("set_memory_mode", user="u2", memory_id=accepted["memory_id"], mode="general")
    assert code_of(unknown) == "unknown_mode"
    assert code_of(other) == "not_found"
