"""Modes through the whole pipeline: declared, chosen, searched and private to their user."""

import pytest

from schemas.moments import iso, moment_of
from schemas.state.modes import collection_name
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message
from tests.worlds.mode_commands import chosen_mode, code_of, count_vectors, declare, remember_turn, search_mode


async def test_declared_mode_reports_its_dimension_and_uses_its_own_model(pipeline: InMemoryPipeline) -> None:
    declared = await declare(pipeline, "code", "tiny48", description="programming", decay="fast")
    assert declared["embedder"] == "tiny48"
    assert declared["embedding_dim"] == 48
    assert declared["decay"] == "fast"
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    assert pipeline.memory("Fixed the parser.").decay == "fast"
    assert pipeline.embedders.model("tiny48").passages == ["Fixed the parser."]
    assert await count_vectors(pipeline) == {"code/tiny48": 1}
    reply = await pipeline.retrieve("the parser", mode="code")
    assert reply["result"]["strategy"] == "hybrid"
    assert reply["result"]["modes"] == ["code"]


async def test_repeated_declaration_embeds_nothing_again(pipeline: InMemoryPipeline) -> None:
    first = await declare(pipeline, "code")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    assert await declare(pipeline, "code") == first
    await pipeline.topics.settled()
    assert pipeline.memory("Fixed the parser.").embedding.status == "ready"
    assert pipeline.embedders.model("tiny32").passages == ["Fixed the parser."]


async def test_mode_was_created_when_its_first_record_was_written(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    declared = await declare(pipeline, "code", description="programming")
    first, _ = pipeline.topics.records(pipeline.names.commands)
    assert declared["created_at"] == iso(moment_of(first.timestamp_ms))


async def test_new_description_changes_no_vector(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", description="old", extraction_hints="keep errors")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    declared = await declare(pipeline, "code", description="new")
    assert declared["description"] == "new"
    assert declared["extraction_hints"] == "keep errors"
    assert len(pipeline.embedders.model("tiny32").passages) == 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"name": "Upper", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "code", "embedder": "none-such"}, "arguments.embedder"),
        ({"name": "code", "embedder": "tiny32", "decay": "sudden"}, "arguments.decay"),
    ],
)
async def test_mode_that_breaks_the_rules_is_rejected_and_not_declared(
    pipeline: InMemoryPipeline, arguments: Json, field: str
) -> None:
    reply = await pipeline.command("declare_mode", **arguments)
    assert code_of(reply) == "invalid_value"
    assert reply["error"]["field"] == field
    assert [mode["name"] for mode in (await pipeline.command("list_modes"))["result"]["modes"]] == ["general"]


async def test_caller_mode_beats_project_user_and_fallback_defaults(pipeline: InMemoryPipeline) -> None:
    assert await chosen_mode(pipeline, "a") == ("general", "fallback")
    await declare(pipeline, "journal", is_default=True)
    await declare(pipeline, "code")
    assert await chosen_mode(pipeline, "b") == ("journal", "user_default")
    await pipeline.command("set_default_mode", project="p1", name="code", for_project=True)
    p1 = {"user_id": "u1", "project_id": "p1"}
    assert await chosen_mode(pipeline, "c", scope=p1) == ("code", "project_default")
    assert await chosen_mode(pipeline, "d") == ("journal", "user_default")
    assert await chosen_mode(pipeline, "e", scope=p1, mode="general") == ("general", "caller")
    await pipeline.command("set_default_mode", name=None)
    assert await chosen_mode(pipeline, "f") == ("general", "fallback")


async def test_turn_in_an_undeclared_mode_is_rejected_and_a_dead_letter(pipeline: InMemoryPipeline) -> None:
    reply = await pipeline.ask(pipeline.names.turns, turn_message("Tea.", "t", mode="none-such"))
    assert code_of(reply) == "unknown_mode"
    assert [letter.header("dead_letter_code") for letter in pipeline.dead_letters()] == [b"unknown_mode"]
    assert list(pipeline.memories.all()) == []


async def test_project_mode_hides_the_users_mode_there(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", project="p1", name="code", embedder="tiny48", for_project=True)
    p1 = {"user_id": "u1", "project_id": "p1"}
    reply = await pipeline.ask(pipeline.names.turns, turn_message("Tea.", "t", mode="code"))
    assert code_of(reply) == "unknown_mode"
    await declare(pipeline, "code", "tiny32")
    await remember_turn(pipeline, "Here.", mode="code", scope=p1)
    await remember_turn(pipeline, "There.", mode="code")
    assert await count_vectors(pipeline) == {"code/tiny48": 1, "code/tiny32": 1}


async def test_modes_of_users_are_separate_in_a_shared_collection(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    assert code_of(await pipeline.retrieve("q", user="u2", mode="code")) == "unknown_mode"
    await pipeline.command("declare_mode", user="u2", name="code", embedder="tiny32")
    await remember_turn(pipeline, "Ana fixed the parser.", mode="code")
    await remember_turn(pipeline, "Ben fixed the parser.", user="u2", mode="code")
    assert await count_vectors(pipeline) == {"code/tiny32": 2}
    assert await search_mode(pipeline, "code", "fixed the parser") == ["Ana fixed the parser."]
    assert await search_mode(pipeline, "code", "fixed the parser", user="u2") == ["Ben fixed the parser."]


async def test_search_over_all_modes_warns_and_finds_each(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", "tiny48")
    await remember_turn(pipeline, "Fixed the leak in the parser.", mode="code")
    await remember_turn(pipeline, "Fixed the leak in the kitchen.")
    reply = await pipeline.retrieve("fixed the leak", mode="*")
    assert {hit["mode"] for hit in reply["result"]["hits"]} == {"code", "general"}
    assert reply["result"]["strategy"] == "cross_mode"
    assert "cross_mode" in [warning["code"] for warning in reply["warnings"]]


async def test_default_mode_query_names_other_modes(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code")
    await remember_turn(pipeline, "Fixed the parser.", mode="code", conversation_id="c-code")
    await remember_turn(pipeline, "Fixed the sink.", conversation_id="c-home")
    reply = await pipeline.retrieve("fixed", conversation_id="c-code")
    assert reply["result"]["modes"] == ["code"]
    [warning] = [warning for warning in reply["warnings"] if warning["code"] == "other_modes"]
    assert "general" in warning["message"]


async def test_collections_are_named_after_declared_modes(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", "tiny32")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    space = pipeline.space("code", "tiny32")
    assert list(await pipeline.index.spaces()) == [collection_name("code", space.fingerprint.digest)]
