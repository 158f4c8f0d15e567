"""Cross-lingual queries in the mode with a model for each language group."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agents.ports.models import Embedder
from agents.retrieval import vector_search
from agents.retrieval.hits import LexicalFeatures
from agents.retrieval.vector_search import VectorSearch
from agents.rules.query.plans import plan_searches
from agents.rules.ranking.rank_fusion import CROSS_LINGUAL_BIAS, ModeSearchResult
from schemas.messages.retrieval import RetrieveRequest
from schemas.models.vectors import Point
from schemas.scopes import Selector
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL, Mode
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import at_partition
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
    selector = Selector.model_validate({"user_id": "ana", "project_id": "*"})
    request = RetrieveRequest(scope=selector, query=query, mode=GENERAL)
    declared = library.modes.get(0, "ana")
    [search] = plan_searches(request, declared, lambda index_name: library.words.memory_columns(0, index_name))
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
    for hits in lists:
        hits.clear()
    return counts


async def cosine(embedder: Embedder, question: str, text: str) -> float:
    query, passage = await embedder.query(question), await embedder.passage(text)
    return float(query.pooled @ passage.pooled)


@pytest.mark.parametrize(("question", "foreign"), [(QUESTION, False), (PREGUNTA, True)])
async def test_every_memory_is_compared_by_the_model_that_made_its_vector(
    library: RetrievalHarness, question: str, foreign: bool
) -> None:
    memories = await remember(library, *SPANISH, *ENGLISH)
    found = {memory.memory_id: memory.score for memory in (await nearest(library, question)).found}
    english, others = readers(library)
    for memory in memories:
        crosses = (memory.text in ENGLISH) == foreign
        expected = await cosine(english if memory.text in ENGLISH else others, question, memory.text)
        expected += CROSS_LINGUAL_BIAS[foreign].dense if crosses else 0.0
        assert found[memory.memory_id] == pytest.approx(expected, abs=1e-5), memory.text


@pytest.mark.parametrize("question", [QUESTION, PREGUNTA])
async def test_maxsim_of_candidates_equals_maxsim_of_all(
    library: RetrievalHarness, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remember(library, *SPANISH, *ENGLISH)
    over_all = (await nearest(library, question)).maxsim
    monkeypatch.setattr(vector_search, "MAXSIM_FULL_SCAN_LIMIT", 1)
    assert (await nearest(library, question)).maxsim == over_all
    assert len(over_all) == 4


async def test_query_tokens_are_compared_in_the_memorys_language(library: RetrievalHarness) -> None:
    spanish, *_ = await remember(library, *SPANISH, ENGLISH[1])
    late = (await nearest(library, QUESTION)).maxsim
    assert late[0].memory_id == spanish.memory_id
    assert late[0].score > late[1].score + 0.3


async def test_matching_memory_in_another_language_ranks_first(library: RetrievalHarness) -> None:
    await remember(library, *SPANISH, ENGLISH[1])
    result, warnings = await library.ask(QUESTION, explain=True)
    first = result.hits[0]
    assert first.text == SPANISH[0]
    assert warnings == []
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
async def test_each_model_with_memories_embeds_the_query_once(
    library: RetrievalHarness, texts: Sequence[str], question: str, expected: tuple[int, int]
) -> None:
    await remember(library, *texts)
    await library.ask(question)
    assert asked(library) == expected


async def test_english_boundary_ranks_as_without_multilingual_model(library: RetrievalHarness) -> None:
    await remember(library, *ENGLISH)
    with_both, _ = await library.ask(QUESTION, explain=True)
    library.embedders.missing(OTHERS)
    without, _ = await library.ask(QUESTION, explain=True)
    assert with_both.hits == without.hits


async def test_only_visible_memories_decide_which_models_run(library: RetrievalHarness) -> None:
    await library.remember(made(SPANISH[0], 0, project="p1"), made(ENGLISH[0], 1, project="p2"))
    await library.ask(QUESTION, project="p2")
    assert asked(library) == (1, 0)
    await library.ask(QUESTION, project=["p1", "p2"])
    assert asked(library) == (1, 1)


@pytest.mark.parametrize("texts", [[*ENGLISH, *SPANISH], SPANISH])
async def test_query_model_answers_alone_until_the_other_is_loaded(
    library: RetrievalHarness, texts: Sequence[str]
) -> None:
    await remember(library, *texts)
    library.embedders.missing(OTHERS)
    result, warnings = await library.ask(QUESTION)
    assert result.strategy == "hybrid"
    assert warnings == []
    assert asked(library) == (1, 0)


async def test_multilingual_outage_costs_only_similarity(library: RetrievalHarness) -> None:
    await remember(library, *ENGLISH, *SPANISH)
    library.embedders.model(OTHERS).outage = True
    result, warnings = await library.ask(QUESTION, explain=True)
    assert result.strategy == "hybrid"
    assert warnings == []
    assert result.hits[0].text == ENGLISH[0]


async def test_outage_of_the_querys_model_is_a_lexical_answer_with_reason(library: RetrievalHarness) -> None:
    await remember(library, *ENGLISH, *SPANISH)
    library.embedders.model(GENERAL).outage = True
    result, [(code, _)] = await library.ask(QUESTION)
    assert result.strategy == "lexical"
    assert code == "degraded"


async def test_memory_removed_during_both_searches_is_no_hit(library: RetrievalHarness) -> None:
    spanish, *_ = await remember(library, *SPANISH, *ENGLISH)
    library.vectors.meanwhile = lambda: library.words.remove(0, spanish.memory_id)
    assert SPANISH[0] not in await library.texts(QUESTION)


async def test_cross_mode_search_uses_both_models_of_a_mode(library: RetrievalHarness) -> None:
    library.modes.declare(Mode(name="code", embedder="tiny32", embedding_dim=32))
    await library.remember(
        *(made(text, number) for number, text in enumerate([*SPANISH, *ENGLISH])),
        made("Fixed the parser.", 9, mode="code", conversation_id="c2"),
    )
    result, [(code, _)] = await library.ask(QUESTION, mode="*", explain=True)
    assert result.strategy == "cross_mode"
    assert code == "cross_mode"
    assert asked(library) == (1, 1)
    assert {hit.text for hit in result.hits[:2]} == {SPANISH[0], ENGLISH[0]}
