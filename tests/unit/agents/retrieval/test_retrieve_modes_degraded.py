"""Queries in modes without model, vectors or index: lexical results with a warning."""

import pytest

from schemas.state.memories import TurnUnderstanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made
from tests.harnesses.modes import CODE, JOURNAL, filled, library_of_modes, turns
from tests.harnesses.retrieval import RetrievalHarness


@pytest.fixture
def library(words: SqliteLexicalIndex) -> RetrievalHarness:
    return library_of_modes(words)


async def test_missing_model_falls_back_to_a_lexical_merge(library: RetrievalHarness) -> None:
    await filled(library)
    library.embedders.missing("tiny48")
    result, warnings = await library.ask("what leaks?", mode="*", explain=True)
    assert result.strategy == "cross_mode"
    assert result.diagnostics["method"] == "lexical_merge"
    assert {hit.text for hit in result.hits[:2]} == {CODE[0], JOURNAL[1]}
    assert all(hit.scores is not None and hit.scores.dense == 0 for hit in result.hits)
    messages = dict(warnings)
    assert set(messages) == {"cross_mode", "degraded"}
    assert "journal" in messages["degraded"]
    assert "tiny48" in messages["degraded"]
    assert library.embedders.model("tiny32").queries == [], "a lexical merge embeds no query"


async def test_query_in_a_language_without_its_model_is_lexical_with_a_reason(library: RetrievalHarness) -> None:
    await library.remember(made("Der Hund schläft im Garten.", 10), made("The kettle boils.", 20))
    library.embedders.missing("multilingual-small")
    result, [(code, message)] = await library.ask("Wo schläft der Hund?")
    assert result.strategy == "lexical"
    assert code == "degraded"
    assert "multilingual-small" in message
    assert result.hits[0].text == "Der Hund schläft im Garten."
    assert (await library.ask("what boils?"))[1] == []


async def test_missing_model_of_a_mode_without_memories_costs_nothing(library: RetrievalHarness) -> None:
    await library.remember(*turns("code", CODE))
    library.embedders.missing("tiny48")
    result, [(code, _)] = await library.ask("what leaks?", mode="*")
    assert result.diagnostics["method"] == "rank_fusion"
    assert code == "cross_mode"
    assert "tiny48" not in library.embedders.status(), "the missing model was not called"


async def test_single_mode_without_model_is_lexical_with_a_reason(library: RetrievalHarness) -> None:
    await filled(library)
    library.embedders.missing("tiny48")
    result, [(code, message)] = await library.ask("what leaks?", mode="journal")
    assert result.strategy == "lexical"
    assert code == "degraded"
    assert "tiny48" in message
    assert result.hits[0].text == JOURNAL[1]


async def test_mode_with_pending_vectors_is_ranked_lexically(library: RetrievalHarness) -> None:
    await library.remember(*turns("code", CODE))
    library.store(*turns("journal", JOURNAL, 10))
    result, warnings = await library.ask("what leaks?", mode=["code", "journal"])
    assert result.diagnostics["method"] == "rank_fusion"
    assert {hit.text for hit in result.hits[:2]} == {CODE[0], JOURNAL[1]}
    assert dict(warnings)["degraded"] == "journal: no vectors"


async def test_missing_model_of_one_mode_does_not_affect_others(library: RetrievalHarness) -> None:
    await library.remember(*turns("code", CODE))
    library.store(*turns("journal", JOURNAL, 10))
    library.embedders.missing("tiny48")
    result, warnings = await library.ask("what leaks?", mode=["code", "journal"])
    assert result.diagnostics["method"] == "rank_fusion"
    assert "journal: embedder 'tiny48' is missing" in dict(warnings)["degraded"]


async def test_modes_without_vectors_are_merged_lexically(library: RetrievalHarness) -> None:
    library.store(*turns("code", CODE), *turns("journal", JOURNAL, 10))
    result, warnings = await library.ask("what leaks?", mode="*")
    assert result.strategy == "cross_mode"
    assert result.diagnostics["method"] == "lexical_merge"
    assert dict(warnings)["degraded"] == "code: no vectors; journal: no vectors"


@pytest.mark.parametrize("broken", ["index", "embedder"])
async def test_index_outage_falls_back_to_a_lexical_merge(library: RetrievalHarness, broken: str) -> None:
    await filled(library)
    if broken == "index":
        library.vectors.down()
    else:
        library.embedders.model("tiny48").outage = True
    result, warnings = await library.ask("what leaks?", mode="*")
    assert result.strategy == "cross_mode"
    assert result.diagnostics["method"] == "lexical_merge"
    assert broken in dict(warnings)["degraded"]
    assert ("code" in dict(warnings)["degraded"]) == (broken == "index"), "the mode that failed is named, no other"
    assert {hit.text for hit in result.hits[:2]} == {CODE[0], JOURNAL[1]}


async def test_matching_topic_breaks_ties_of_a_lexical_merge(library: RetrievalHarness) -> None:
    same = "It went well."
    plain, matching = made(same, 1, mode="code"), made(same, 1, mode="journal", conversation_id="c2")
    library.store(plain, matching.model_copy(update={"reading": TurnUnderstanding(topic="Garden party")}))
    hits = (await library.ask("how did the garden party go?", mode="*"))[0].hits
    assert [hit.mode for hit in hits] == ["journal", "code"]
    assert hits[0].score > hits[1].score
