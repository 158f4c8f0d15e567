"""Cross-lingual queries through the whole pipeline."""

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message

OTHERS = "multilingual-small"
SPANISH = "La tienda de Consuelo está en Plasencia."
ENGLISH = ("The kettle is in the kitchen.", "We water the tomatoes.", "The bus leaves at nine.")


async def test_english_query_finds_spanish_turns_by_their_own_model(pipeline: InMemoryPipeline) -> None:
    for text in (SPANISH, *ENGLISH):
        await pipeline.ask(pipeline.names.turns, turn_message(text, text))
    await pipeline.topics.settled()
    question = "Which town is Plasencia?"
    result = (await pipeline.retrieve(question, explain=True))["result"]
    dense = {hit["text"]: hit["scores"]["dense"] for hit in result["hits"]}
    assert max(dense, key=lambda text: dense[text]) == SPANISH
    assert dense[SPANISH] > 0.2
    assert [pipeline.embedders.model(name).queries for name in ("general", OTHERS)] == [[question], [question]]


async def test_english_user_never_calls_the_multilingual_model(pipeline: InMemoryPipeline) -> None:
    for text in ENGLISH:
        await pipeline.ask(pipeline.names.turns, turn_message(text, text))
    await pipeline.topics.settled()
    reply = await pipeline.retrieve("Where is the kettle?")
    assert reply["result"]["hits"][0]["text"] == ENGLISH[0]
    assert pipeline.embedders.model(OTHERS).queries == []
