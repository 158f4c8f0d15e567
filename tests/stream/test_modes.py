"""Modes over the whole map: declared, chosen, renamed, deleted, and embedded by models that come and go."""

from collections import Counter
from typing import Any

import pytest

from agents.rules.partitioning import partition_of
from schemas.modes import collection_name
from tests.stream.in_memory_map import InMemoryMap, Json, turn

HERE = partition_of(b"u1", 4)


async def declare(the_map: InMemoryMap, name: str, embedder: str = "tiny32", **more: Any) -> Json:
    reply = await the_map.command("declare_mode", name=name, embedder=embedder, **more)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def said(the_map: InMemoryMap, text: str, **fields: Any) -> Json:
    """What a turn was answered with, once it has its vector."""
    reply = await the_map.ask(the_map.names.turns, turn(text, text, **fields))
    assert reply["status"] == "ok", reply
    await the_map.topics.settled()
    return dict(reply["result"])


async def decided(the_map: InMemoryMap, text: str, **fields: Any) -> tuple[str, str]:
    accepted = await said(the_map, text, **fields)
    return accepted["mode"], accepted["mode_source"]


async def places(the_map: InMemoryMap) -> Counter[str]:
    """How many vectors lie in which collection, of those that have any."""
    found: Counter[str] = Counter()
    ids = [memory.memory_id for memory in the_map.memories.all()]
    for name, fingerprint in (await the_map.index.spaces()).items():
        mode = name.removesuffix(f"-{fingerprint.digest}")
        if there := await the_map.vectors_in(mode, fingerprint, ids):
            found[f"{mode}/{fingerprint.embedder}"] = len(there)
    return found


def code_of(reply: Json) -> str:
    return str(reply["error"]["code"])


async def in_mode(the_map: InMemoryMap, mode: str, query: str, **fields: Any) -> list[str]:
    return await the_map.texts(query, mode=mode, **fields)


async def test_a_declared_mode_says_its_dimension_and_embeds_its_turns_by_its_own_model(the_map: InMemoryMap) -> None:
    declared = await declare(the_map, "code", "tiny48", description="programming", decay="fast")
    assert (declared["embedder"], declared["embedding_dim"], declared["decay"]) == ("tiny48", 48, "fast")
    await said(the_map, "Fixed the parser.", mode="code")
    assert the_map.memory("Fixed the parser.").decay == "fast"
    assert the_map.embedders.model("tiny48").passages == ["Fixed the parser."]
    assert await places(the_map) == {"code/tiny48": 1}
    reply = await the_map.retrieve("the parser", mode="code")
    assert (reply["result"]["strategy"], reply["result"]["modes"]) == ("hybrid", ["code"])


async def test_declaring_twice_is_the_same_as_once_and_embeds_nothing_again(the_map: InMemoryMap) -> None:
    first = await declare(the_map, "code")
    await said(the_map, "Fixed the parser.", mode="code")
    assert await declare(the_map, "code") == first
    await the_map.topics.settled()
    assert the_map.memory("Fixed the parser.").embedding.status == "ready"
    assert the_map.embedders.model("tiny32").passages == ["Fixed the parser."]


async def test_what_a_new_description_says_changes_no_vector(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", description="old", extraction_hints="keep errors")
    await said(the_map, "Fixed the parser.", mode="code")
    declared = await declare(the_map, "code", description="new")
    assert (declared["description"], declared["extraction_hints"]) == ("new", "keep errors")
    assert len(the_map.embedders.model("tiny32").passages) == 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"name": "Upper", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "code", "embedder": "none-such"}, "arguments.embedder"),
        ({"name": "code", "embedder": "tiny32", "decay": "sudden"}, "arguments.decay"),
    ],
)
async def test_a_mode_that_breaks_the_rules_is_refused_and_not_declared(
    the_map: InMemoryMap, arguments: Json, field: str
) -> None:
    reply = await the_map.command("declare_mode", **arguments)
    assert (code_of(reply), reply["error"]["field"]) == ("invalid_value", field)
    assert [mode["name"] for mode in (await the_map.command("list_modes"))["result"]["modes"]] == ["general"]


async def test_a_caller_beats_the_projects_default_that_the_users_and_that_the_fallback(the_map: InMemoryMap) -> None:
    assert await decided(the_map, "a") == ("general", "fallback")
    await declare(the_map, "journal", is_default=True)
    await declare(the_map, "code")
    assert await decided(the_map, "b") == ("journal", "user_default")
    await the_map.command("set_default_mode", project="p1", name="code", for_project=True)
    p1 = {"user_id": "u1", "project_id": "p1"}
    assert await decided(the_map, "c", scope=p1) == ("code", "project_default")
    assert await decided(the_map, "d") == ("journal", "user_default")
    assert await decided(the_map, "e", scope=p1, mode="general") == ("general", "caller")
    await the_map.command("set_default_mode", name=None)
    assert await decided(the_map, "f") == ("general", "fallback")


async def test_a_turn_in_an_undeclared_mode_is_refused_and_a_dead_letter(the_map: InMemoryMap) -> None:
    reply = await the_map.ask(the_map.names.turns, turn("Tea.", "t", mode="none-such"))
    assert code_of(reply) == "unknown_mode"
    assert [letter.header("dead_letter_code") for letter in the_map.dead_letters()] == [b"unknown_mode"]
    assert list(the_map.memories.all()) == []


async def test_a_mode_of_a_project_exists_only_there_and_hides_the_users(the_map: InMemoryMap) -> None:
    await the_map.command("declare_mode", project="p1", name="code", embedder="tiny48", for_project=True)
    p1 = {"user_id": "u1", "project_id": "p1"}
    reply = await the_map.ask(the_map.names.turns, turn("Tea.", "t", mode="code"))
    assert code_of(reply) == "unknown_mode"
    await declare(the_map, "code", "tiny32")
    await said(the_map, "Here.", mode="code", scope=p1)
    await said(the_map, "There.", mode="code")
    assert await places(the_map) == {"code/tiny48": 1, "code/tiny32": 1}


async def test_modes_of_one_user_are_nothing_to_another_though_they_share_a_collection(the_map: InMemoryMap) -> None:
    await declare(the_map, "code")
    assert code_of(await the_map.retrieve("q", user="u2", mode="code")) == "unknown_mode"
    await the_map.command("declare_mode", user="u2", name="code", embedder="tiny32")
    await said(the_map, "Ana fixed the parser.", mode="code")
    await said(the_map, "Ben fixed the parser.", user="u2", mode="code")
    assert await places(the_map) == {"code/tiny32": 2}
    assert await in_mode(the_map, "code", "fixed the parser") == ["Ana fixed the parser."]
    assert await in_mode(the_map, "code", "fixed the parser", user="u2") == ["Ben fixed the parser."]


async def test_a_search_over_all_modes_warns_and_finds_each(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", "tiny48")
    await said(the_map, "Fixed the leak in the parser.", mode="code")
    await said(the_map, "Fixed the leak in the kitchen.")
    reply = await the_map.retrieve("fixed the leak", mode="*")
    assert {hit["mode"] for hit in reply["result"]["hits"]} == {"code", "general"}
    assert reply["result"]["strategy"] == "cross_mode"
    assert "cross_mode" in [one["code"] for one in reply["warnings"]]


async def test_without_a_mode_the_conversations_is_searched_and_the_others_are_named(the_map: InMemoryMap) -> None:
    await declare(the_map, "code")
    await said(the_map, "Fixed the parser.", mode="code", conversation_id="c-code")
    await said(the_map, "Fixed the sink.", conversation_id="c-home")
    reply = await the_map.retrieve("fixed", conversation_id="c-code")
    assert reply["result"]["modes"] == ["code"]
    [warning] = [one for one in reply["warnings"] if one["code"] == "other_modes"]
    assert "general" in warning["message"]


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


async def test_another_embedder_makes_memories_stale_and_embeds_them_again_while_answers_go_on(
    the_map: InMemoryMap,
) -> None:
    await declare(the_map, "code", "tiny32")
    for number in range(5):
        await said(the_map, f"Crate {number}.", mode="code")
    await said(the_map, "Of another mode.")
    the_map.index.down()
    declared = await declare(the_map, "code", "tiny48")
    assert declared["embedding_dim"] == 48
    reply = await the_map.retrieve("crate", mode="code")
    assert len(reply["result"]["hits"]) == 5
    assert {hit["embedding_status"] for hit in reply["result"]["hits"]} <= {"stale", "pending"}
    assert "degraded" in [one["code"] for one in reply["warnings"]]
    the_map.index.up()
    await the_map.until(lambda: {one.embedding.status for one in the_map.memories.all()} == {"ready"})
    await the_map.topics.settled()
    assert await places(the_map) == {"code/tiny48": 5, "general/all-MiniLM-L6-v2": 1}
    assert (await the_map.retrieve("crate", mode="code"))["result"]["strategy"] == "hybrid"
    assert len(the_map.embedders.model("tiny48").passages) == 5


async def test_a_mode_whose_model_is_missing_is_found_by_words_and_embedded_once_it_is_there(
    the_map: InMemoryMap,
) -> None:
    the_map.embedders.missing("tiny48")
    await declare(the_map, "code", "tiny48")
    await said(the_map, "Fixed the parser.", mode="code")
    await said(the_map, "Of another mode.")
    assert the_map.memory("Of another mode.").embedding.status == "ready", "nobody waits for the missing model"
    reply = await the_map.retrieve("the parser", mode="code")
    assert [hit["embedding_status"] for hit in reply["result"]["hits"]] == ["pending"]
    assert (reply["result"]["strategy"], [one["code"] for one in reply["warnings"]]) == ("lexical", ["degraded"])
    stands = (await the_map.command("health"))["result"]["modes"]["code"]
    assert (stands["eligible"], stands["pending"], stands["error"]["code"]) == (1, 1, "unavailable")
    the_map.embedders.load("tiny48")
    await the_map.until(lambda: the_map.memory("Fixed the parser.").embedding.status == "ready")
    assert (await the_map.retrieve("the parser", mode="code"))["result"]["strategy"] == "hybrid"
    stands = (await the_map.command("health"))["result"]["modes"]["code"]
    assert (stands["ready"], stands["pending"], stands["error"]) == (1, 0, None)


async def test_a_language_whose_model_is_missing_is_found_by_words_and_embedded_once_it_is_there(
    the_map: InMemoryMap,
) -> None:
    the_map.embedders.missing("multilingual-small")
    await said(the_map, "Der Hund schläft im Garten.")
    await said(the_map, "The kettle is in the garden.")
    await the_map.topics.settled()
    assert the_map.memory("Der Hund schläft im Garten.").embedding.status == "pending"
    assert the_map.memory("The kettle is in the garden.").embedding.status == "ready", "nobody waits for it"
    reply = await the_map.retrieve("Wo schläft der Hund?")
    assert (reply["result"]["strategy"], [one["code"] for one in reply["warnings"]]) == ("lexical", ["degraded"])
    assert (await the_map.retrieve("where is the kettle?"))["warnings"] == []
    the_map.embedders.load("multilingual-small")
    await the_map.until(lambda: the_map.memory("Der Hund schläft im Garten.").embedding.status == "ready")
    assert (await the_map.retrieve("Wo schläft der Hund?"))["result"]["strategy"] == "hybrid"
    assert the_map.embedders.model("multilingual-small").passages == ["Der Hund schläft im Garten."]


async def test_an_embedder_that_is_missing_when_a_mode_gets_it_embeds_when_it_is_there(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", "tiny32")
    await said(the_map, "Fixed the parser.", mode="code")
    the_map.embedders.missing("tiny48")
    await declare(the_map, "code", "tiny48")
    assert await in_mode(the_map, "code", "parser") == ["Fixed the parser."]
    assert (await the_map.command("health"))["result"]["modes"]["code"]["stale"] == 1
    the_map.embedders.load("tiny48")
    await the_map.until(lambda: the_map.memory("Fixed the parser.").embedding.status == "ready")
    await the_map.topics.settled()
    assert await places(the_map) == {"code/tiny48": 1}


async def test_a_vector_that_was_on_its_way_when_its_mode_got_another_embedder_stays_nowhere_else(
    the_map: InMemoryMap,
) -> None:
    await declare(the_map, "code", "tiny32")
    the_map.index.down()
    await the_map.remember("Fixed the parser.", "t", mode="code")
    await the_map.waiting_for("vector index")
    await declare(the_map, "code", "tiny48")
    the_map.index.up()
    await the_map.until(lambda: the_map.memory("Fixed the parser.").embedding.status == "ready")
    await the_map.topics.settled()
    assert the_map.memory("Fixed the parser.").embedding.space == the_map.space("code", "tiny48").fingerprint.digest
    assert await places(the_map) == {"code/tiny48": 1}


async def test_what_is_declared_in_a_table_names_the_collections(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", "tiny32")
    await said(the_map, "Fixed the parser.", mode="code")
    space = the_map.space("code", "tiny32")
    assert list(await the_map.index.spaces()) == [collection_name("code", space.fingerprint.digest)]
