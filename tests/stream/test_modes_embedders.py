"""Modes over the whole map: embedded by models that change, come and go."""

from tests.worlds.in_memory_pipeline import InMemoryMap
from tests.worlds.mode_commands import declare, in_mode, places, said


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
