"""Cross-lingual queries in the mode with a model for each language group."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agents.ports.embedder import Embedder
from agents.retrieval import vector_search
from agents.retrieval.lexical_features import LexicalFeatures
from agents.retrieval.vector_search import VectorSearch
from agents.rules.query.plans import plan_searches
from agents.rules.ranking.cross_lingual import CROSS_LINGUAL_BIAS
from agents.rules.ranking.rank_fusion import ModeSearchResult
from schemas.messages.retrieval import RetrieveRequest
from schemas.models.vectors import Point
from schemas.scopes import Selector
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL, Mode
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores.partition_views import at_partition
from tests.builders.memories import made
from tests.harnesses.retrieval import RetrievalHarness

OTHERS = "multilingual-small"
SPANISH = ["La tienda de Consuelo está en Plasencia.", "El perro duerme con los gatos en el jardín."]
ENGLISH = ["The shop in Plasencia sells wool.", "The kettle is in the kitchen."]
QUESTION, PREGUNTA = "What is there in Plasencia?", "¿Qué es lo que hay en Plasencia?"


@pytest.fixture
def library(tmp_path: Path) -> Iterator[RetrievalHarness]:
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    yield RetrievalHarness(words)
    words.close()


async def remember(library: RetrievalHarness, *texts: str) -> list[Memory]:
    """Store turns with pooled and token vectors."""
    memories = await library.remember(*(made(text, number) for number, text in enumerate(texts)))
    for memory in memories:
        embedder, space = library.spaces.of(memory)
        made_of = await embedder.passage(memory.text)
        point = Point(
            memory_id=memory.memory_id,
            vector=made_of.pooled,
            tokens=made_of.tokens,
            type=memory.type,
            occurred_ms=memory.occurred_ms,
            content_hash=memory.content_hash,
            boundary=memory.index_name,
            partition=0,
            scope=memory.scope,
            mode=memory.mode,
        )
        await library.vectors.upsert(space, [point])
    return memories


async def nearest(library: RetrievalHarness, query: str) -> ModeSearchResult:
    """Return the vector scores of the nearest memory."""
    selector = Selector.model_validate({"user_id": "ana", "project_id": "*"})
    request = RetrieveRequest(scope=selector, query=query, mode=GENERAL)
    declared = library.modes.get(0, "ana")
    [search] = plan_searches(request, declared, lambda shelf: library.words.memory_columns(0, shelf), lambda _: None)
    words = LexicalFeatures(at_partition(library.words, 0), library.clock, search)
    [found] = await VectorSearch(library.vectors, library.spaces).nearest(search, words)
    return found


def readers(library: RetrievalHarness) -> tuple[Embedder, Embedder]:
    """Return the English and the multilingual model with their prefixes."""
    english, others = (Mode(name="m", embedder=name, embedding_dim=384) for name in ("all-MiniLM-L6-v2", OTHERS))
    return library.embedders.of(english), library.embedders.of(others)


def asked(library: RetrievalHarness) -> tuple[int, int]:
    """Return the queries to the English and the multilingual model since the last call."""
    lists = [library.embedders.model(name).queries for name in (GENERAL, OTHERS)]
    counts = len(lists[0]), len(lists[1])
    for one in lists:
        one.clear()
    return counts


async def cosine(embedder: Embedder, question: str, text: str) -> float:
    asked_for, kept = await embedder.query(question), await embedder.passage(text)
    return float(asked_for.pooled @ kept.pooled)


@pytest.mark.parametrize(("question", "foreign"), [(QUESTION, False), (PREGUNTA, True)])
async def test_every_memory_is_compared_by_the_model_that_made_its_vector(
    library: RetrievalHarness, question: str, foreign: bool
) -> None:
    memories = await remember(library, *SPANISH, *ENGLISH)
    found = {one.memory_id: one.score for one in (await nearest(library, question)).found}
    english, others = readers(library)
    for memory in memories:
        crosses = (memory.text in ENGLISH) == foreign
        expected = await cosine(english if memory.text in ENGLISH else others, question, memory.text)
        expected += CROSS_LINGUAL_BIAS[foreign].dense if crosses else 0.0
        assert found[memory.memory_id] == pytest.approx(expected, abs=1e-5), memory.text


@pytest.mark.parametrize("question", [QUESTION, PREGUNTA])
async def test_late_interaction_over_candidates_says_what_it_says_over_all(
    library: RetrievalHarness, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remember(library, *SPANISH, *ENGLISH)
    over_all = (await nearest(library, question)).maxsim
    monkeypatch.setattr(vector_search, "MAXSIM_FULL_SCAN_LIMIT", 1)
    assert (await nearest(library, question)).maxsim == over_all
    assert len(over_all) == 4


async def test_a_token_of_the_question_counts_in_the_language_of_the_memory(library: RetrievalHarness) -> None:
    spanish, *_ = await remember(library, *SPANISH, ENGLISH[1])
    late = (await nearest(library, QUESTION)).maxsim
    assert late[0].memory_id == spanish.memory_id
    assert late[0].score > late[1].score + 0.3


async def test_what_was_said_in_another_language_comes_first_where_it_answers(library: RetrievalHarness) -> None:
    await remember(library, *SPANISH, ENGLISH[1])
    result, warnings = await library.ask(QUESTION, explain=True)
    first = result.hits[0]
    assert (first.text, warnings) == (SPANISH[0], [])
    assert first.scores is not None
    assert first.scores.dense > 0.2


@pytest.mark.parametrize(
    ("texts", "question", "expected"),
    [
        (ENGLISH, QUESTION, (1, 0)),
        (SPANISH, PREGUNTA, (0, 1)),
        (SPANISH, QUESTION, (0, 1)),
        (ENGLISH, PREGUNTA, (1, 0)),
        ([*ENGLISH, *SPANISH], QUESTION, (1, 1)),
        ([*ENGLISH, *SPANISH], PREGUNTA, (1, 1)),
    ],
)
async def test_a_model_is_asked_once_where_there_are_memories_of_its_kind(
    library: RetrievalHarness, texts: Sequence[str], question: str, expected: tuple[int, int]
) -> None:
    await remember(library, *texts)
    await library.ask(question)
    assert asked(library) == expected


async def test_a_purely_english_boundary_answers_as_without_the_other_model(library: RetrievalHarness) -> None:
    await remember(library, *ENGLISH)
    with_both, _ = await library.ask(QUESTION, explain=True)
    library.embedders.missing(OTHERS)
    without, _ = await library.ask(QUESTION, explain=True)
    assert with_both.hits == without.hits


async def test_only_what_the_read_may_see_decides_who_is_asked(library: RetrievalHarness) -> None:
    await library.remember(made(SPANISH[0], 0, project="p1"), made(ENGLISH[0], 1, project="p2"))
    await library.ask(QUESTION, project="p2")
    assert asked(library) == (1, 0)
    await library.ask(QUESTION, project=["p1", "p2"])
    assert asked(library) == (1, 1)


@pytest.mark.parametrize("texts", [[*ENGLISH, *SPANISH], SPANISH])
async def test_query_model_answers_without_a_warning_until_the_other_is_loaded(
    library: RetrievalHarness, texts: Sequence[str]
) -> None:
    await remember(library, *texts)
    library.embedders.missing(OTHERS)
    result, warnings = await library.ask(QUESTION)
    assert (result.strategy, warnings, asked(library)) == ("hybrid", [], (1, 0))


async def test_outage_of_the_other_model_costs_its_memories_similarity_only(library: RetrievalHarness) -> None:
    await remember(library, *ENGLISH, *SPANISH)
    library.embedders.model(OTHERS).outage = True
    result, warnings = await library.ask(QUESTION, explain=True)
    assert (result.strategy, warnings) == ("hybrid", [])
    assert result.hits[0].text == ENGLISH[0]


async def test_outage_of_the_querys_model_is_a_lexical_answer_with_reason(library: RetrievalHarness) -> None:
    await remember(library, *ENGLISH, *SPANISH)
    library.embedders.model(GENERAL).outage = True
    result, [(code, _)] = await library.ask(QUESTION)
    assert (result.strategy, code) == ("lexical", "degraded")


async def test_a_memory_that_goes_while_both_are_asked_is_no_hit(library: RetrievalHarness) -> None:
    spanish, *_ = await remember(library, *SPANISH, *ENGLISH)
    library.vectors.meanwhile = lambda: library.words.remove(0, spanish.memory_id)
    assert SPANISH[0] not in await library.texts(QUESTION)


async def test_beside_other_modes_a_mode_is_still_asked_by_both_its_models(library: RetrievalHarness) -> None:
    library.modes.declare(Mode(name="code", embedder="tiny32", embedding_dim=32))
    await library.remember(
        *(made(text, number) for number, text in enumerate([*SPANISH, *ENGLISH])),
        made("Fixed the parser.", 9, mode="code", conversation_id="c2"),
    )
    result, [(code, _)] = await library.ask(QUESTION, mode="*", explain=True)
    assert (result.strategy, code, asked(library)) == ("cross_mode", "cross_mode", (1, 1))
    assert {hit.text for hit in result.hits[:2]} == {SPANISH[0], ENGLISH[0]}
