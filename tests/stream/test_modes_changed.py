"""Modes over the whole map: renamed and deleted, and memories that are put into another one."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryMap, turn
from tests.worlds.mode_commands import code_of, decided, declare, in_mode, places, said

HERE = partition_of(b"u1", 4)


async def test_memories_follow_a_renamed_mode_with_their_vectors(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", is_default=True)
    for number in range(120):
        await the_map.remember(f"Crate {number}.", f"t-{number}")
    await the_map.topics.settled()
    model = the_map.embedders.model("tiny32")
    made = list(model.passages)
    reply = await the_map.command("rename_mode", name="code", new_name="craft")
    assert reply["result"]["name"] == "craft"
    found = await the_map.retrieve("crate", mode="craft", top_k=100)
    assert len(found["result"]["hits"]) == 100, "ok means that every later request sees its effect"
    await the_map.topics.settled()
    assert {(memory.mode, memory.embedding.status) for memory in the_map.memories.all()} == {("craft", "ready")}
    assert await places(the_map) == {"craft/tiny32": 120}
    assert model.passages == made, "vectors are moved, not made again"
    assert code_of(await the_map.retrieve("crate", mode="code")) == "unknown_mode"
    assert await decided(the_map, "Later.") == ("craft", "user_default")


async def test_renaming_again_is_the_same_and_renaming_onto_another_is_a_conflict(the_map: InMemoryMap) -> None:
    await declare(the_map, "code")
    await declare(the_map, "journal")
    first = await the_map.command("rename_mode", name="code", new_name="craft")
    assert (await the_map.command("rename_mode", name="code", new_name="craft"))["result"] == first["result"]
    assert code_of(await the_map.command("rename_mode", name="craft", new_name="journal")) == "conflict"
    assert code_of(await the_map.command("rename_mode", name="gone", new_name="new")) == "unknown_mode"


async def test_a_turn_that_comes_again_after_its_mode_was_renamed_is_a_duplicate(the_map: InMemoryMap) -> None:
    await declare(the_map, "code")
    await said(the_map, "Fixed the parser.", mode="code")
    await the_map.command("rename_mode", name="code", new_name="craft")
    again = await said(the_map, "Fixed the parser.", mode="code")
    assert (again["duplicate"], again["mode"]) == (True, "craft")


async def test_a_renamed_users_mode_leaves_the_projects_own_of_that_name_alone(the_map: InMemoryMap) -> None:
    await declare(the_map, "code")
    await the_map.command("declare_mode", project="p1", name="code", embedder="tiny48", for_project=True)
    await said(the_map, "Here.", mode="code", scope={"user_id": "u1", "project_id": "p1"})
    await said(the_map, "There.", mode="code")
    await the_map.command("rename_mode", name="code", new_name="craft")
    await the_map.topics.settled()
    assert (the_map.memory("Here.").mode, the_map.memory("There.").mode) == ("code", "craft")


async def test_a_mode_can_be_deleted_with_its_memories_and_a_replay_does_not_bring_them_back(
    the_map: InMemoryMap,
) -> None:
    await declare(the_map, "code")
    for number in range(3):
        gone = await said(the_map, f"Fixed parser {number}.", mode="code")
    await said(the_map, "Kept.")
    reply = await the_map.command("delete_mode", name="code", memories="forget")
    assert (reply["result"]["forgotten"], reply["result"]["moved"]) == (3, 0)
    assert [hit["text"] for hit in (await the_map.retrieve("fixed kept", mode="*"))["result"]["hits"]] == ["Kept."]
    await the_map.topics.settled()
    assert [memory.text for memory in the_map.memories.all()] == ["Kept."]
    assert await the_map.index.count(the_map.space("code", "tiny32"), HERE) == 0
    assert code_of(await the_map.command("get_memory", memory_id=gone["memory_id"])) == "not_found"
    for text in ("Fixed parser 0.", "Fixed parser 0, edited."):
        replayed = await the_map.ask(the_map.names.turns, turn(text, "Fixed parser 0.", mode="code"))
        assert (replayed["status"], [one["code"] for one in replayed["warnings"]]) == ("ok", ["forgotten"])
    await the_map.topics.settled()
    assert [memory.text for memory in the_map.memories.all()] == ["Kept."]
    assert the_map.dead_letters() == []


@pytest.mark.parametrize(
    "taken_back", [{"command": "delete_mode", "memories": "forget"}, {"command": "rename_mode", "new_name": "craft"}]
)
async def test_a_turn_that_comes_while_its_mode_is_taken_back_is_not_left_in_it(
    tmp_path: Path, taken_back: dict[str, str]
) -> None:
    the_map = InMemoryMap(tmp_path)
    the_map.turns_log = log = SlowLog(the_map)
    async with the_map.running():
        await declare(the_map, "code")
        await said(the_map, "Before.", mode="code")
        log.meanwhile.append("Meanwhile.")
        assert (await the_map.command(name="code", **taken_back))["status"] == "ok"
        await the_map.topics.settled()
        assert {memory.mode for memory in the_map.memories.all()} <= {"craft"}


@dataclass
class SlowLog:
    """A log of turns in a map; while it is asked where it ends, users say more in the mode `code`."""

    the_map: InMemoryMap
    meanwhile: list[str] = field(default_factory=list)

    async def end(self, partition: int) -> int:
        """Where it ended when it was asked."""
        ended = sum(record.partition == partition for record in self.the_map.topics.records(self.the_map.names.turns))
        while self.meanwhile:
            text = self.meanwhile.pop()
            await self.the_map.ask(self.the_map.names.turns, turn(text, text, mode="code"))
        return ended

    def is_assigned(self, partition: int) -> bool:
        """It is."""
        return True

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        """Every turn is handed over as it is written."""
        return True


async def test_what_was_forgotten_is_still_so_in_a_mode_of_the_same_name(the_map: InMemoryMap) -> None:
    await declare(the_map, "code")
    await said(the_map, "Fixed the parser.", mode="code")
    await the_map.command("delete_mode", name="code", memories="forget")
    await declare(the_map, "code", "tiny48")
    replayed = await the_map.ask(the_map.names.turns, turn("Fixed the parser.", "Fixed the parser.", mode="code"))
    assert [one["code"] for one in replayed["warnings"]] == ["forgotten"]
    await said(the_map, "A new one.", mode="code")
    assert await in_mode(the_map, "code", "parser new one") == ["A new one."]


async def test_the_memories_of_a_deleted_mode_can_be_moved_into_another_space(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", "tiny32", is_default=True)
    await declare(the_map, "journal", "tiny48")
    await said(the_map, "To be moved.")
    reply = await the_map.command("delete_mode", name="code", memories="move:journal")
    assert reply["result"]["moved"] == 1
    assert await in_mode(the_map, "journal", "moved") == ["To be moved."]
    assert await places(the_map) == {"journal/tiny48": 1}
    assert await decided(the_map, "Later.") == ("general", "fallback")


@pytest.mark.parametrize("memories", [None, "burn", "move:none-such", "move:code"])
async def test_deleting_needs_a_word_about_the_memories(the_map: InMemoryMap, memories: str | None) -> None:
    await declare(the_map, "code")
    more = {} if memories is None else {"memories": memories}
    assert code_of(await the_map.command("delete_mode", name="code", **more)) in ("invalid_value", "unknown_mode")
    assert await decided(the_map, "Still there.", mode="code") == ("code", "caller")


async def test_a_memory_is_put_into_another_mode_and_stays_there(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", "tiny32")
    await declare(the_map, "journal", "tiny48", decay="slow")
    accepted = await said(the_map, "The parser made me cry.", mode="code")
    reply = await the_map.command("set_memory_mode", memory_id=accepted["memory_id"], mode="journal")
    shown = reply["result"]
    assert (shown["memory_id"], shown["mode"], shown["mode_source"]) == (accepted["memory_id"], "journal", "caller")
    assert await in_mode(the_map, "journal", "parser") == ["The parser made me cry."]
    assert await in_mode(the_map, "code", "parser") == []
    assert await places(the_map) == {"journal/tiny48": 1}
    assert the_map.memory("The parser made me cry.").decay == "slow"
    again = await said(the_map, "The parser made me cry.", mode="code")
    assert (again["duplicate"], again["mode"]) == (True, "journal")
    edited = await the_map.ask(the_map.names.turns, turn("The parser made me laugh.", "The parser made me cry."))
    assert edited["result"]["mode"] == "journal", "an edit does not undo a correction"
    telemetry = (await the_map.command("health"))["result"]["telemetry"]
    assert (telemetry["corrections"], telemetry["corrections_per_hundred"]) == (1, 100.0)


async def test_a_memory_that_is_put_where_it_is_is_no_correction_and_gets_no_new_vector(the_map: InMemoryMap) -> None:
    await declare(the_map, "code")
    accepted = await said(the_map, "Fixed the parser.", mode="code")
    reply = await the_map.command("set_memory_mode", memory_id=accepted["memory_id"], mode="code")
    assert reply["result"]["mode"] == "code"
    await the_map.topics.settled()
    assert len(the_map.topics.records(the_map.names.remembered)) == 1
    assert (await the_map.command("health"))["result"]["telemetry"]["corrections"] == 0


async def test_a_memory_is_not_put_into_an_unknown_mode_nor_by_another_user(the_map: InMemoryMap) -> None:
    accepted = await said(the_map, "Tea.")
    unknown = await the_map.command("set_memory_mode", memory_id=accepted["memory_id"], mode="none-such")
    other = await the_map.command("set_memory_mode", user="u2", memory_id=accepted["memory_id"], mode="general")
    assert (code_of(unknown), code_of(other)) == ("unknown_mode", "not_found")
