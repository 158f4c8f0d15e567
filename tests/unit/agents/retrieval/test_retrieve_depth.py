"""Drill-down from intention over categories to items, only as deep as a query needs."""

from typing import Any

import pytest

from schemas.messages.retrieval import RetrieveResult
from schemas.state.categories import Category, Taxonomy
from schemas.state.intention import Intention, IntentionEntry
from schemas.state.memories import Memory
from schemas.state.modes import Mode
from tests.builders.items import item_of, spans, with_items
from tests.builders.memories import START, made
from tests.harnesses.retrieval import RetrievalHarness

SCOPE = {"user_id": "ana", "project_id": "default"}
GOAL = "I want to ship the beta in June."
TALK = ["Dinner was lentil soup.", "The beta tester is called Ben.", "We ship pallets by rail.", "June was rainy."]


def entry(text: str, *turns: Memory, **fields: Any) -> IntentionEntry:
    known: dict[str, Any] = {"source": "said", "at": START, "offset": 1, "evidence": spans(turns)}
    return IntentionEntry(text=text, **(known | fields))


async def with_a_goal(library: RetrievalHarness, project: str = "default", **fields: Any) -> Memory:
    goal = made(GOAL, 10, project=project, **fields)
    await library.remember(goal, *(made(text, place, project=project) for place, text in enumerate(TALK)))
    intention = Intention(goals=(entry("to ship the beta in June", goal),))
    library.intentions.put(0, SCOPE | {"project_id": project}, intention)
    return goal


async def deep(library: RetrievalHarness, query: str, **fields: Any) -> RetrieveResult:
    return (await library.ask(query, depth="auto", **{"project": "default"} | fields))[0]


async def test_sufficient_intention_ends_the_search(library: RetrievalHarness) -> None:
    goal = await with_a_goal(library)
    result = await deep(library, "when do we ship the beta?", explain=True)
    assert [hit.memory_id for hit in result.hits] == [goal.memory_id]
    assert result.diagnostics["depth"] == "intention"
    assert result.intention is not None
    [shown] = result.intention["goals"]
    assert shown["text"] == "to ship the beta in June"
    assert shown["scope"] == SCOPE
    assert shown["score"] == 1.0
    assert result.intention["constraints"] == []
    assert result.categories == []
    assert result.strategy == "hybrid"
    assert result.hits[0].scores is not None


@pytest.mark.parametrize("query", ["what are the current goals?", "what is our goal?"])
async def test_query_can_name_the_intention_list(library: RetrievalHarness, query: str) -> None:
    goal = await with_a_goal(library)
    result = await deep(library, query)
    assert [hit.memory_id for hit in result.hits] == [goal.memory_id]


async def test_insufficient_intention_is_added_to_the_items(library: RetrievalHarness) -> None:
    goal = await with_a_goal(library)
    result = await deep(library, "who tests the beta before we ship?")
    assert result.diagnostics["depth"] == "items"
    assert {hit.memory_id for hit in result.hits} > {goal.memory_id}
    assert result.intention is not None
    assert len(result.intention["goals"]) == 1


async def test_entry_without_a_date_does_not_answer_a_time_query(library: RetrievalHarness) -> None:
    await with_a_goal(library)
    library.intentions.put(0, SCOPE, Intention(goals=(entry("to ship the beta"),)))
    assert (await deep(library, "when do we ship the beta?")).diagnostics["depth"] == "items"
    assert (await deep(library, "how many beta testers ship?")).diagnostics["depth"] == "items"


async def test_unrelated_query_drills_down_to_items(library: RetrievalHarness) -> None:
    await with_a_goal(library)
    result = await deep(library, "what was for dinner?")
    assert result.hits[0].text == TALK[0]
    assert result.intention is None
    assert result.categories == []
    assert result.diagnostics["depth"] == "items"


async def test_resolved_and_other_modes_entries_do_not_end_the_search(library: RetrievalHarness) -> None:
    library.modes.declare(Mode(name="journal", embedder="tiny48", embedding_dim=48))
    goal = await with_a_goal(library, mode="journal")
    result = await deep(library, "when do we ship the beta?", mode="general")
    assert result.diagnostics["depth"] == "items", "its turn is in another mode"
    assert len(result.hits) == len(TALK), "its turn is in another mode"
    done = entry("to ship the beta in June", goal, resolved_by="x")
    library.intentions.put(0, SCOPE, Intention(goals=(done,)))
    assert (await deep(library, "when do we ship the beta?")).intention is None


async def test_default_depth_is_items(library: RetrievalHarness) -> None:
    await with_a_goal(library)
    result, _ = await library.ask("when do we ship the beta?", project="default")
    assert result.intention is None
    assert result.categories == []
    assert len(result.hits) == len(TALK) + 1
    assert result.diagnostics["depth"] == "items"


async def test_scope_shows_no_intention_of_another(library: RetrievalHarness) -> None:
    await with_a_goal(library, "p1")
    await library.remember(made("The beta is a fish.", 50, project="p2"))
    assert (await deep(library, "when do we ship the beta?", project="p2")).intention is None
    assert (await deep(library, "when do we ship the beta?", user="ben")).intention is None
    for project in (["p1", "p2"], "*"):
        several = await deep(library, "when do we ship the beta?", project=project)
        assert several.intention is not None
        assert [goal["scope"]["project_id"] for goal in several.intention["goals"]] == ["p1"]
        assert several.diagnostics["depth"] == "intention"


async def with_a_category(library: RetrievalHarness) -> tuple[Memory, Memory]:
    turn = made("My dentist is Doctor Webb in Harbour Street.", 1)
    item = item_of(turn, text="My dentist is Doctor Webb in Harbour Street.")
    turn = with_items(turn, item)
    await library.remember(turn, item, *(made(text, 5 + place) for place, text in enumerate(TALK)))
    health = Category(
        name="health",
        description="doctors and sports",
        summary=item.text,
        anchors=(item.memory_id,),
        rests_on={item.memory_id: item.content_hash},
        declared=True,
    )
    library.categories.put(0, SCOPE, Taxonomy(categories={"health": health}))
    return turn, item


async def test_sufficient_category_ends_the_search_with_its_turns(library: RetrievalHarness) -> None:
    turn, item = await with_a_category(library)
    result = await deep(library, "what is the dentist in Harbour Street married: Webb?")
    assert result.diagnostics["depth"] == "items", "one word is missing"
    result = await deep(library, "is the dentist in Harbour Street Webb?")
    assert result.diagnostics["depth"] == "categories"
    assert [hit.memory_id for hit in result.hits] == [turn.memory_id]
    [shown] = result.categories
    assert shown["name"] == "health"
    assert shown["summary"] == item.text
    assert shown["anchors"] == [item.memory_id]
    only = await deep(library, "is the dentist in Harbour Street Webb?", types=["semantic"])
    assert [hit.memory_id for hit in only.hits] == [item.memory_id]


async def test_category_summary_of_removed_items_is_not_shown(library: RetrievalHarness) -> None:
    _, item = await with_a_category(library)
    del library.records[item.memory_id]
    result = await deep(library, "is the dentist in Harbour Street Webb?")
    assert result.diagnostics["depth"] == "items"
    assert result.categories == []
    result = await deep(library, "doctors and health?")
    assert [category["summary"] for category in result.categories] == [None]
    assert result.diagnostics["depth"] == "items", "a description is no summary"
