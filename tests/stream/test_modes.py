"""Modes over the whole map: declared, chosen, searched, and nothing to another user."""

import pytest

from schemas.modes import collection_name
from tests.worlds.in_memory_pipeline import InMemoryMap, Json, turn
from tests.worlds.mode_commands import code_of, decided, declare, in_mode, places, said


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


async def test_what_is_declared_in_a_table_names_the_collections(the_map: InMemoryMap) -> None:
    await declare(the_map, "code", "tiny32")
    await said(the_map, "Fixed the parser.", mode="code")
    space = the_map.space("code", "tiny32")
    assert list(await the_map.index.spaces()) == [collection_name("code", space.fingerprint.digest)]
