"""Items inside the hits of turns or as hits, and summaries of several turns."""

from datetime import timedelta
from typing import Any

import pytest
from modestream_client.hits import Hit

from schemas.state.memories import Memory
from schemas.state.modes import Mode
from tests.builders.items import distilled_of, item_of, with_items
from tests.builders.memories import START, made
from tests.harnesses.retrieval import RetrievalHarness

LEDGER = "We decided to use PostgreSQL for the ledger."
API = "The API must answer within 200 ms."
DEPLOY = "To deploy, run make release."


async def dense(library: RetrievalHarness) -> tuple[Memory, list[Memory]]:
    """Store one turn with a decision, a constraint and a procedure, among others."""
    turn = made(f"{LEDGER} {API} {DEPLOY}", 1, speaker="Ana")
    items = [
        item_of(turn, text=LEDGER, kind="decision"),
        item_of(turn, text=API, kind="constraint"),
        item_of(turn, text=DEPLOY, kind="procedure", type="procedural"),
    ]
    turn = with_items(turn, *items)
    others = [made(text, 2 + place) for place, text in enumerate(("Dinner was soup.", "The tram leaves at nine."))]
    await library.remember(turn, *items, *others)
    return turn, items


async def first(library: RetrievalHarness, query: str, **fields: Any) -> Hit:
    return (await library.ask(query, **fields))[0].hits[0]


async def test_turn_hit_contains_its_matching_items(library: RetrievalHarness) -> None:
    turn, [ledger, api, _] = await dense(library)
    result, _ = await library.ask("what was decided about the ledger?")
    assert len({hit.memory_id for hit in result.hits}) == len(result.hits) == 3
    hit = result.hits[0]
    assert hit.memory_id == turn.memory_id
    assert [(item.memory_id, item.type, item.kind, item.text) for item in hit.items] == [
        (ledger.memory_id, "semantic", "decision", LEDGER)
    ]
    assert [item.memory_id for item in (await first(library, "how fast must the API answer?")).items] == [api.memory_id]


async def test_items_are_sorted_with_scores_within_bounds(library: RetrievalHarness) -> None:
    await dense(library)
    items = (await first(library, "PostgreSQL for the ledger, and to run the release")).items
    assert [item.text for item in items][:1] == [LEDGER]
    assert len(items) == 2
    assert all(0 < item.score <= 1 for item in items)
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)


async def test_hit_without_matching_items_has_none_on_the_wire(library: RetrievalHarness) -> None:
    await dense(library)
    hit = await first(library, "when does the tram leave?")
    assert "items" not in hit.model_dump()
    assert "items" in (await first(library, "the ledger")).model_dump()


async def test_items_in_hits_have_the_requested_types(library: RetrievalHarness) -> None:
    turn, _ = await dense(library)
    query = "the ledger, and to run make release"
    hit = await first(library, query, types=["episodic", "procedural"])
    assert hit.memory_id == turn.memory_id
    assert [item.text for item in hit.items] == [DEPLOY]
    assert (await first(library, query, types=["episodic"])).items == ()


async def test_superseded_item_is_inside_only_on_demand(library: RetrievalHarness) -> None:
    _, [ledger, *_] = await dense(library)
    library.store(ledger.model_copy(update={"superseded_by": "another"}))
    assert (await first(library, "the ledger")).items == ()
    shown = await first(library, "the ledger", include_superseded=True)
    assert [item.memory_id for item in shown.items] == [ledger.memory_id]


async def test_removed_item_is_not_in_its_hit(library: RetrievalHarness) -> None:
    _, [ledger, *_] = await dense(library)
    del library.records[ledger.memory_id]
    assert (await first(library, "the ledger")).items == ()


async def test_items_are_hits_if_turns_are_excluded(library: RetrievalHarness) -> None:
    _, items = await dense(library)
    result, warnings = await library.ask("the ledger, the API and deploying", types=["semantic", "procedural"])
    assert {hit.memory_id for hit in result.hits} == {item.memory_id for item in items}
    assert result.strategy == "hybrid"
    assert result.diagnostics["candidates"] == 3
    assert warnings == []
    for hit in result.hits:
        assert hit.turn_id == "t-1"
        assert hit.conversation_id == "c1"
        assert hit.speaker == "Ana"
        assert hit.items == ()
        assert [span.turn_id for span in hit.evidence] == ["t-1"]
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    only, _ = await library.ask("the ledger", types=["procedural"])
    assert [hit.memory_id for hit in only.hits] == [items[2].memory_id]


async def test_items_without_vectors_are_found_lexically(library: RetrievalHarness) -> None:
    turn, _ = await dense(library)
    library.store(item_of(turn, text="The harbour tram is line nine."))
    [hit, *_] = (await library.ask("harbour tram line", types=["semantic"], mode="general"))[0].hits
    assert hit.text == "The harbour tram is line nine."
    assert hit.embedding_status == "pending"


async def test_items_move_no_ranking_and_no_score_of_turns(library: RetrievalHarness) -> None:
    await library.remember(made("Dinner was soup.", 2), made("The ledger is old.", 3), made("We met at nine.", 4))
    before = [hit.model_dump() for hit in (await library.ask("the ledger", explain=True))[0].hits]
    items = [item_of(made("elsewhere", 9), text=f"The ledger of year {year} is kept.") for year in range(50)]
    await library.remember(*items)
    after = [hit.model_dump() for hit in (await library.ask("the ledger", explain=True))[0].hits]
    assert after == before


@pytest.mark.parametrize("explain", [True, False])
async def test_items_are_hits_across_modes_and_in_times(library: RetrievalHarness, explain: bool) -> None:
    library.modes.declare(Mode(name="code", embedder="tiny48", embedding_dim=48))
    turns = [made("The parser leaks.", 1, mode="code"), made("The kitchen tap leaks.", 5)]
    items = [item_of(turn, text=f"It is so: {turn.text}") for turn in turns]
    await library.remember(*turns, *items)
    how: dict[str, Any] = {"types": ["semantic"], "explain": explain}
    result, [(code, _)] = await library.ask("what leaks?", mode="*", **how)
    assert len(result.hits) == 2
    assert result.strategy == "cross_mode"
    assert code == "cross_mode"
    later, _ = await library.ask("what leaks?", mode="*", since=START + timedelta(minutes=3), **how)
    assert [hit.memory_id for hit in later.hits] == [items[1].memory_id]
    _, [(code, message)] = await library.ask("what leaks?", **how)
    assert code == "other_modes", "items are counted if items are requested"
    assert message.endswith("code (1)"), "items are counted if items are requested"


async def test_superseded_item_is_a_hit_only_on_demand(library: RetrievalHarness) -> None:
    turn = made("The deploy target is Heroku.", 1)
    [old] = await library.remember(item_of(turn, text="The deploy target is Heroku.", superseded_by="x"))
    assert (await library.ask("deploy target", types=["semantic"]))[0].hits == []
    [hit] = (await library.ask("deploy target", types=["semantic"], include_superseded=True))[0].hits
    assert hit.memory_id == old.memory_id


async def test_summary_hit_has_no_turn_and_its_best_source_first(library: RetrievalHarness) -> None:
    texts = ["The tomatoes look healthy.", "The greenhouse key hangs by the door.", "The soil was dry on Monday."]
    turns = [made(text, place, superseded_by="distilled") for place, text in enumerate(texts)]
    summary = distilled_of(*turns, text="Ana tends a greenhouse with tomatoes.")
    await library.remember(*turns, summary)
    for types in (None, ["semantic"], ["episodic", "semantic"]):
        [hit] = (await library.ask("where does the key of the greenhouse hang?", types=types))[0].hits
        assert hit.memory_id == summary.memory_id
        assert hit.turn_id is None
        assert hit.conversation_id is None
        assert hit.role is None
        assert [span.turn_id for span in hit.evidence] == ["t-1", "t-0", "t-2"]
    [hit] = (await library.ask("was the soil dry?"))[0].hits
    assert [span.turn_id for span in hit.evidence] == ["t-2", "t-0", "t-1"]


async def test_removed_source_is_no_evidence(library: RetrievalHarness) -> None:
    turns = [made(text, place, superseded_by="distilled") for place, text in enumerate(("One tea.", "Two teas."))]
    await library.remember(*turns, distilled_of(*turns, text="Ana drinks tea."))
    del library.records[turns[0].memory_id]
    [hit] = (await library.ask("tea"))[0].hits
    assert [span.turn_id for span in hit.evidence] == ["t-1"]


async def test_items_and_summaries_are_merged_by_score(library: RetrievalHarness) -> None:
    turns = [made("The soup was salty.", place) for place in range(3)]
    summary = distilled_of(*turns, text="Ana finds the soup salty.")
    items = [item_of(turns[0], text=text) for text in ("The soup was salty.", "The tram is late.")]
    await library.remember(*turns, summary, *items)
    result, _ = await library.ask("salty soup", types=["semantic"], top_k=2)
    assert {hit.memory_id for hit in result.hits} == {summary.memory_id, items[0].memory_id}
    assert result.hits[0].score >= result.hits[1].score
    assert result.diagnostics["candidates"] == 3


async def test_working_memory_is_the_conversations_last_turns(library: RetrievalHarness) -> None:
    here = [made(f"Remark {number} on the harbour.", number, conversation_id="c1") for number in range(205)]
    await library.remember(*here, made("The harbour elsewhere.", 300, conversation_id="c2"))
    result, _ = await library.ask("harbour", types=["working"], conversation_id="c1", top_k=100)
    assert {hit.conversation_id for hit in result.hits} == {"c1"}
    assert {hit.type for hit in result.hits} == {"working"}
    assert result.diagnostics["candidates"] == 200
    assert (await library.ask("harbour", types=["working"]))[0].hits == [], "without a conversation there is no window"
    both, _ = await library.ask("harbour", types=["working", "episodic"], conversation_id="c1", top_k=100)
    assert both.diagnostics["candidates"] == 206
    assert {hit.type for hit in both.hits} == {"episodic"}


async def test_no_types_at_all_find_nothing(library: RetrievalHarness) -> None:
    await dense(library)
    assert (await library.ask("the ledger", types=[]))[0].hits == []
