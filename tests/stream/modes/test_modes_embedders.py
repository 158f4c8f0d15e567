"""Modes through the whole pipeline with models that change, appear and disappear."""

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.mode_commands import count_vectors, declare, remember_turn, search_mode


async def test_new_embedder_makes_memories_stale_while_answers_go_on(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", "tiny32")
    for number in range(5):
        await remember_turn(pipeline, f"Crate {number}.", mode="code")
    await remember_turn(pipeline, "Of another mode.")
    pipeline.index.down()
    declared = await declare(pipeline, "code", "tiny48")
    assert declared["embedding_dim"] == 48
    reply = await pipeline.retrieve("crate", mode="code")
    assert len(reply["result"]["hits"]) == 5
    assert {hit["embedding_status"] for hit in reply["result"]["hits"]} <= {"stale", "pending"}
    assert "degraded" in [warning["code"] for warning in reply["warnings"]]
    pipeline.index.up()
    await pipeline.until(lambda: {memory.embedding.status for memory in pipeline.memories.all()} == {"ready"})
    await pipeline.topics.settled()
    assert await count_vectors(pipeline) == {"code/tiny32": 5, "code/tiny48": 5, "general/all-MiniLM-L6-v2": 1}
    assert (await pipeline.retrieve("crate", mode="code"))["result"]["strategy"] == "hybrid"
    assert len(pipeline.embedders.model("tiny48").passages) == 5


async def test_mode_without_its_model_is_lexical_until_it_is_loaded(pipeline: InMemoryPipeline) -> None:
    pipeline.embedders.missing("tiny48")
    await declare(pipeline, "code", "tiny48")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    await remember_turn(pipeline, "Of another mode.")
    assert pipeline.memory("Of another mode.").embedding.status == "ready", (
        "other modes do not wait for the missing model"
    )
    reply = await pipeline.retrieve("the parser", mode="code")
    assert [hit["embedding_status"] for hit in reply["result"]["hits"]] == ["pending"]
    assert reply["result"]["strategy"] == "lexical"
    assert [warning["code"] for warning in reply["warnings"]] == ["degraded"]
    status = (await pipeline.command("health"))["result"]["modes"]["code"]
    assert status["eligible"] == 1
    assert status["pending"] == 1
    assert status["error"]["code"] == "unavailable"
    pipeline.embedders.load("tiny48")
    await pipeline.until(lambda: pipeline.memory("Fixed the parser.").embedding.status == "ready")
    assert (await pipeline.retrieve("the parser", mode="code"))["result"]["strategy"] == "hybrid"
    status = (await pipeline.command("health"))["result"]["modes"]["code"]
    assert status["ready"] == 1
    assert status["pending"] == 0
    assert status["error"] is None


async def test_mode_whose_idle_model_was_unloaded_waits_for_it(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", "tiny48")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    pipeline.embedders.model("tiny48").unloaded = True
    await remember_turn(pipeline, "Tested the parser.", mode="code")
    await remember_turn(pipeline, "Of another mode.")
    await pipeline.topics.settled()
    assert pipeline.memory("Tested the parser.").embedding.status == "pending"
    assert pipeline.memory("Of another mode.").embedding.status == "ready"
    reply = await pipeline.retrieve("the parser", mode="code")
    assert len(reply["result"]["hits"]) == 2
    assert reply["result"]["strategy"] == "lexical"
    assert [warning["code"] for warning in reply["warnings"]] == ["degraded"]
    pipeline.embedders.load("tiny48")
    await pipeline.until(lambda: pipeline.memory("Tested the parser.").embedding.status == "ready")
    assert (await pipeline.retrieve("the parser", mode="code"))["result"]["strategy"] == "hybrid"


async def test_language_without_its_model_is_lexical_then_embedded_when_loaded(pipeline: InMemoryPipeline) -> None:
    pipeline.embedders.missing("multilingual-small")
    await remember_turn(pipeline, "Der Hund schläft im Garten.")
    await remember_turn(pipeline, "The kettle is in the garden.")
    await pipeline.topics.settled()
    assert pipeline.memory("Der Hund schläft im Garten.").embedding.status == "pending"
    assert pipeline.memory("The kettle is in the garden.").embedding.status == "ready", (
        "queries do not wait for the missing model"
    )
    reply = await pipeline.retrieve("Wo schläft der Hund?")
    assert reply["result"]["strategy"] == "lexical"
    assert [warning["code"] for warning in reply["warnings"]] == ["degraded"]
    assert (await pipeline.retrieve("where is the kettle?"))["warnings"] == []
    pipeline.embedders.load("multilingual-small")
    await pipeline.until(lambda: pipeline.memory("Der Hund schläft im Garten.").embedding.status == "ready")
    assert (await pipeline.retrieve("Wo schläft der Hund?"))["result"]["strategy"] == "hybrid"
    assert pipeline.embedders.model("multilingual-small").passages == ["Der Hund schläft im Garten."]


async def test_missing_embedder_of_a_changed_mode_embeds_when_loaded(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", "tiny32")
    await remember_turn(pipeline, "Fixed the parser.", mode="code")
    pipeline.embedders.missing("tiny48")
    await declare(pipeline, "code", "tiny48")
    assert await search_mode(pipeline, "code", "parser") == ["Fixed the parser."]
    assert (await pipeline.command("health"))["result"]["modes"]["code"]["stale"] == 1
    pipeline.embedders.load("tiny48")
    await pipeline.until(lambda: pipeline.memory("Fixed the parser.").embedding.status == "ready")
    await pipeline.topics.settled()
    assert await count_vectors(pipeline) == {"code/tiny32": 1, "code/tiny48": 1}


async def test_vector_in_flight_during_an_embedder_change_is_made_in_the_new_space_alone(
    pipeline: InMemoryPipeline,
) -> None:
    await declare(pipeline, "code", "tiny32")
    pipeline.index.down()
    await pipeline.remember("Fixed the parser.", "t", mode="code")
    await pipeline.until_waiting_for("vector index")
    await declare(pipeline, "code", "tiny48")
    pipeline.index.up()
    await pipeline.until(lambda: pipeline.memory("Fixed the parser.").embedding.status == "ready")
    await pipeline.topics.settled()
    assert pipeline.memory("Fixed the parser.").embedding.space == pipeline.space("code", "tiny48").fingerprint.digest
    assert await count_vectors(pipeline) == {"code/tiny48": 1}
