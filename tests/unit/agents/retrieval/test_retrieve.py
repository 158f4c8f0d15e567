"""`Retrieve`: a query in, ranked memories out."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from modestream_client.hits import Evidence
from modestream_client.vocabulary import MAX_MOMENT, MIN_MOMENT

from schemas.failures import Rejected
from schemas.messages.retrieval import ContextSearch, RetrieveRequest
from schemas.scopes import PROJECT_FIELD, Selector
from schemas.state.memories import Embedding, Memory, VectorLocation
from tests.builders.memories import START, made
from tests.harnesses.retrieval import RetrievalHarness

FACTS = [
    "The violin lesson moved to Thursday at five.",
    "Our violin teacher is called Mrs Okafor.",
    "Bought rosin and a new bow for the violin.",
    "The lesson costs forty euros.",
    "Dinner was lentil soup with lemon.",
    "The tram to the harbour leaves every ten minutes.",
]
SIGNALS = {"dense", "late", "lexical", "neighbours", "recency", "importance", "entity", "speaker"}


def facts(**fields: Any) -> list[Memory]:
    return [made(text, number, **fields) for number, text in enumerate(FACTS)]


async def test_best_hit_ranks_first(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    assert (await library.texts("what is the violin teacher called?"))[0] == FACTS[1]
    assert (await library.texts("when does the tram to the harbour leave?"))[0] == FACTS[5]


async def test_embedded_memories_give_hybrid_diagnostics(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    result, warnings = await library.ask("violin")
    assert result.strategy == "hybrid"
    assert result.modes == ["general"]
    assert warnings == []
    assert result.diagnostics["candidates"] == len(FACTS)
    assert {"took_ms", "method"} <= set(result.diagnostics)


async def test_scores_fall_and_stay_within_bounds(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    scores = [hit.score for hit in (await library.ask("violin lesson on Thursday"))[0].hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("moment", [MIN_MOMENT, MAX_MOMENT])
async def test_memories_at_the_ends_of_the_calendar_are_found(library: RetrievalHarness, moment: datetime) -> None:
    await library.remember(*facts(), made("The violin is immortal.", 9, occurred_at=moment))
    assert "The violin is immortal." in await library.texts("is the violin immortal?", since=moment)
    assert FACTS[1] in await library.texts("what was the violin teacher called in May?")


async def test_time_filter_has_subsecond_precision(library: RetrievalHarness) -> None:
    memory = made("The violin is late.", occurred_at=START - timedelta(microseconds=1))
    await library.remember(memory)
    assert await library.texts("violin", since=START) == []
    assert await library.texts("violin", until=START) == [memory.text]


async def test_scores_are_explained_on_demand_only(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    for hit in (await library.ask("violin", explain=True))[0].hits:
        assert hit.scores is not None
        explained = hit.scores.model_dump()
        assert set(explained) == SIGNALS
        assert all(0 <= value <= 1 for value in explained.values())
    assert all(hit.scores is None for hit in (await library.ask("violin"))[0].hits)


async def test_hit_has_all_fields_of_its_memory(library: RetrievalHarness) -> None:
    [memory] = await library.remember(made("Zoë 🎂 is here", speaker="Ana", importance=0.7))
    [hit] = (await library.ask("who is here?"))[0].hits
    assert hit.occurred_at == "2026-02-01T10:00:00Z"
    assert hit.evidence == (Evidence(turn_id="t-0", start=0, end=13),)
    shared = {"memory_id", "turn_id", "conversation_id", "scope", "type", "mode", "mode_source", "role", "speaker"}
    assert hit.model_dump(include=shared) == memory.model_dump(include=shared)
    assert hit.text == "Zoë 🎂 is here"
    assert hit.version == 1
    assert hit.embedding_status == "ready"


async def test_hit_has_the_evidence_of_the_record(library: RetrievalHarness) -> None:
    evidence = (Evidence(turn_id="t-5", start=1, end=3),)
    await library.remember(made("distilled", turn_id=None, role=None, evidence=evidence, type="semantic"))
    assert (await library.ask("distilled"))[0].hits[0].evidence == evidence


@pytest.mark.parametrize("top_k", [1, 3, 12, 100])
async def test_top_k_limits_the_hits_and_fills_up_with_the_nearest(library: RetrievalHarness, top_k: int) -> None:
    await library.remember(*(made(f"The heron was seen {n} times.", n) for n in range(14)))
    assert len(await library.texts("something else entirely", top_k=top_k)) == min(top_k, 14)


async def test_identifier_match_ranks_first(library: RetrievalHarness) -> None:
    await library.remember(*facts(), made("Part number ZX-81-K17 is on back order.", 9))
    assert "ZX-81-K17" in (await library.texts("ZX-81-K17"))[0]


async def test_memory_without_vector_is_found_lexically(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    library.store(made("The parcel 4711 was delivered.", 7))
    result, warnings = await library.ask("what about 4711?", explain=True)
    assert result.hits[0].text == "The parcel 4711 was delivered."
    assert result.hits[0].embedding_status == "pending"
    assert result.hits[0].scores is not None
    assert result.hits[0].scores.dense == 0
    assert result.strategy == "hybrid"
    assert warnings == []


async def test_vector_of_a_replaced_text_counts_for_nothing(library: RetrievalHarness) -> None:
    old, new = "locker code quagga seven", "the key hangs behind the door"
    [memory, copy] = await library.remember(made(old, 0), made(old, 1, conversation_id="c2"))
    library.store(memory.model_copy(update={"text": new, "embedding": Embedding(status="pending")}))
    hits = (await library.ask(old, explain=True))[0].hits
    assert [hit.memory_id for hit in hits] == [copy.memory_id, memory.memory_id]
    assert hits[1].scores is not None
    assert hits[1].scores.dense == hits[1].scores.lexical == 0


async def test_neighbour_of_a_match_ranks_before_others(library: RetrievalHarness) -> None:
    talk = ["Where did you hide the spare key?", "Under the third stone.", "Lovely weather today."]
    others = [made("Somewhere beyond that hill.", 10 + n, conversation_id=f"c{n + 2}") for n in range(5)]
    await library.remember(*(made(text, n) for n, text in enumerate(talk)), *others)
    assert await library.texts("spare key hidden", top_k=2) == talk[:2]


async def test_named_speaker_ranks_first(library: RetrievalHarness) -> None:
    memory = "I repaired the old bicycle."
    await library.remember(
        made(memory, 0, speaker="Ben", conversation_id="c1"), made(memory, 1, speaker="Ana Lima", conversation_id="c2")
    )
    [first, second] = (await library.ask("What did Ana repair?", explain=True))[0].hits
    assert first.speaker == "Ana Lima"
    assert first.scores is not None
    assert second.scores is not None
    assert first.scores.speaker == 1
    assert second.scores.speaker == 0
    assert library.embedders.model("general").queries == ["What did repair?"]


async def test_importance_and_recency_decide_between_equals(library: RetrievalHarness) -> None:
    equal = [made("The pond is frozen.", n, conversation_id=f"c{n}") for n in range(3)]
    dull, important = equal[0], equal[1].model_copy(update={"importance": 1.0})
    recent = equal[2].model_copy(update={"occurred_at": START + timedelta(days=19)})
    await library.remember(dull, important, recent)
    found = [hit.memory_id for hit in (await library.ask("is the pond frozen?"))[0].hits]
    assert found == [important.memory_id, recent.memory_id, dull.memory_id]


async def test_equal_scores_are_ordered_by_id(library: RetrievalHarness) -> None:
    same = [made("The pond is frozen.", n, conversation_id=f"c{n}", occurred_at=START) for n in range(20)]
    await library.remember(*same)
    found = [hit.memory_id for hit in (await library.ask("pond", top_k=7))[0].hits]
    assert found == sorted(memory.memory_id for memory in same)[:7]


async def test_moment_later_scores_have_hardly_moved(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    before = (await library.ask("violin lesson"))[0].hits
    library.clock.time += timedelta(seconds=30)
    after = (await library.ask("violin lesson"))[0].hits
    assert [hit.memory_id for hit in after] == [hit.memory_id for hit in before]
    for then, now in zip(before, after, strict=True):
        assert now.score == pytest.approx(then.score, abs=1e-4)


async def test_another_users_turns_change_no_score(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    before = (await library.ask("violin lesson on Thursday", explain=True))[0].hits
    noise = [made(f"{FACTS[n % 6]} as was said on violin day {n}", n, user="ben", speaker="Violin") for n in range(60)]
    await library.remember(*noise)
    assert (await library.ask("violin lesson on Thursday", explain=True))[0].hits == before
    assert (await library.ask("violin", user="carl"))[0].hits == []


async def test_filters_hold_for_every_hit(library: RetrievalHarness) -> None:
    memories = [
        made("violin one", 0),
        made("violin two", 1, project="p1"),
        made("violin three", 2, type="semantic"),
        made("violin four", 3, superseded_by="other"),
    ]
    await library.remember(*memories)
    assert await library.texts("violin", project="p1") == ["violin two"]
    assert await library.texts("violin", types=["semantic"]) == ["violin three"]
    assert await library.texts("violin", since=memories[1].occurred_at, until=memories[2].occurred_at) == ["violin two"]
    assert "violin four" not in await library.texts("violin")
    assert "violin four" in await library.texts("violin", include_superseded=True)


async def test_empty_scope_has_no_hits_and_no_warning(library: RetrievalHarness) -> None:
    await library.remember(*facts(project="p1"))
    result, warnings = await library.ask("violin", project="p2")
    assert result.hits == []
    assert result.strategy == "hybrid"
    assert warnings == []
    assert library.embedders.model("general").queries == [], "no query is embedded without vectors"


async def test_without_any_vector_the_answer_is_lexical(library: RetrievalHarness) -> None:
    library.store(*facts())
    result, warnings = await library.ask("what is the violin teacher called?")
    assert result.strategy == "lexical"
    assert warnings == [("degraded", "no vectors")]
    assert result.hits[0].text == FACTS[1]


@pytest.mark.parametrize("broken", ["index", "embedder"])
async def test_outage_makes_the_answer_lexical(library: RetrievalHarness, broken: str) -> None:
    await library.remember(*facts())
    if broken == "index":
        library.vectors.down()
    else:
        library.embedders.model("general").outage = True
    result, [(code, message)] = await library.ask("what is the violin teacher called?")
    assert result.strategy == "lexical"
    assert code == "degraded"
    assert broken in message
    assert result.hits[0].text == FACTS[1]


async def test_vectors_of_another_space_do_not_count(library: RetrievalHarness) -> None:
    elsewhere = Embedding(status="ready", place=VectorLocation(mode="general", space="another"))
    library.store(*(memory.model_copy(update={"embedding": elsewhere}) for memory in facts()))
    assert (await library.ask("violin"))[1] == [("degraded", "no vectors")]


async def test_vector_without_a_record_is_no_hit(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    forgotten = made("violin violin violin", 50)
    await library.embed(forgotten)
    assert forgotten.text not in await library.texts("violin", top_k=100)


async def test_removed_record_is_no_hit(library: RetrievalHarness) -> None:
    [memory] = await library.remember(made("violin"))
    del library.records[memory.memory_id]
    assert await library.texts("violin") == []


async def test_repeated_query_has_equal_hits(library: RetrievalHarness) -> None:
    await library.remember(*facts())
    first = (await library.ask("violin lesson", explain=True))[0].hits
    for _ in range(5):
        assert (await library.ask("violin lesson", explain=True))[0].hits == first


@pytest.mark.parametrize("mode", ["general", None, "*", ["general"], ["*"]])
async def test_every_spelling_of_the_only_mode_works(library: RetrievalHarness, mode: Any) -> None:
    await library.remember(*facts())
    assert (await library.ask("violin", mode=mode))[0].modes == ["general"]


@pytest.mark.parametrize("mode", ["journal", ["general", "journal"]])
async def test_unknown_mode_is_rejected(library: RetrievalHarness, mode: Any) -> None:
    with pytest.raises(Rejected) as refused:
        await library.ask("violin", mode=mode)
    assert refused.value.code == "unknown_mode"
    assert refused.value.field == "mode"


@pytest.mark.parametrize("query", ["???", "the", 'SELECT * FROM "x" -- NEAR(', "\x00", "a" * 32768, "word " * 6000])
async def test_any_query_text_is_answered(library: RetrievalHarness, query: str) -> None:
    await library.remember(*facts())
    assert len(await library.texts(query)) == len(FACTS)


async def test_write_during_query_embedding_is_visible(library: RetrievalHarness) -> None:
    await library.remember(*facts())

    library.vectors.meanwhile = lambda: library.store(made("violin case", 30))
    assert "violin case" in await library.texts("violin case")


def in_projects(*projects: str) -> list[Memory]:
    return [
        made("The violin is at the luthier's.", number, project=project, conversation_id=f"in-{project}")
        for number, project in enumerate(projects)
    ]


async def first_project(library: RetrievalHarness, search: type[RetrieveRequest], projects: str | list[str]) -> str:
    scope = Selector.model_validate({"user_id": "ana", "project_id": projects})
    request = search(scope=scope, query="where is the violin?", conversation_id="in-pb")
    return (await library.retrieve.answer(request))[0].hits[0].scope[PROJECT_FIELD]


async def test_of_equal_memories_a_context_has_that_of_its_conversations_project(library: RetrievalHarness) -> None:
    await library.remember(*in_projects("pa", "pb", "pc"))
    assert await first_project(library, ContextSearch, "*") == "pb"


async def test_a_search_prefers_no_project(library: RetrievalHarness) -> None:
    await library.remember(*in_projects("pa", "pb", "pc"))
    assert await first_project(library, RetrieveRequest, "*") == "pc", "the latest one"


async def test_in_one_project_a_context_has_the_scores_of_a_search(library: RetrievalHarness) -> None:
    await library.remember(*in_projects("pa", "pb", "pb"))
    scope = Selector.model_validate({"user_id": "ana", "project_id": "pb"})
    searched, prepared = [
        (await library.retrieve.answer(kind(scope=scope, query="violin", conversation_id="in-pb")))[0].hits
        for kind in (RetrieveRequest, ContextSearch)
    ]
    assert prepared == searched
