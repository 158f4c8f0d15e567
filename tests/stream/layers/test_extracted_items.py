"""Items extracted from turns, through the whole pipeline to a query."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]

LEDGER = "We decided to use PostgreSQL for the ledger."
DENSE = f"{LEDGER} The API must answer within 200 ms. To deploy, run make release."
GOAL = "My goal is to ship the beta in June."
ITEMS = ["semantic", "procedural", "state_object"]


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path).running() as running:
        await running.remember(DENSE, "t-1")
        await running.remember(GOAL, "t-2")
        for place, text in enumerate(
            ("Dinner was lentil soup.", "The tram was late again.", "We ship pallets by rail.")
        ):
            await running.remember(text, f"t-{3 + place}")
        await running.topics.settled()
        yield running


async def hits(pipeline: InMemoryPipeline, query: str, **fields: Any) -> list[Json]:
    found: list[Json] = (await pipeline.retrieve(query, **fields))["result"]["hits"]
    return found


async def test_turn_is_one_hit_with_its_items_inside(pipeline: InMemoryPipeline) -> None:
    found = await hits(pipeline, "what was decided about the ledger?", top_k=100)
    assert [hit["turn_id"] for hit in found].count("t-1") == 1
    assert len(found) == 5
    assert [item["text"] for item in found[0]["items"]] == [LEDGER]
    assert all("items" not in hit for hit in found[1:])


async def test_items_are_hits_of_their_own_with_their_turns_as_evidence(pipeline: InMemoryPipeline) -> None:
    found = await hits(pipeline, "the ledger, the API and deploying", types=ITEMS)
    assert found[0]["text"] in DENSE
    assert {span["turn_id"] for hit in found for span in hit["evidence"]} <= {"t-1", "t-2"}
    assert all(hit["type"] in ITEMS for hit in found)
    for hit in found:
        [span] = hit["evidence"]
        assert {"t-1": DENSE, "t-2": GOAL}[span["turn_id"]][span["start"] : span["end"]] == hit["text"]


async def test_deep_search_ends_at_a_sufficient_intention(pipeline: InMemoryPipeline) -> None:
    result = (await pipeline.retrieve("when do we ship the beta?", depth="auto"))["result"]
    assert result["diagnostics"]["depth"] == "intention"
    assert [hit["turn_id"] for hit in result["hits"]] == ["t-2"]
    assert "ship the beta" in result["intention"]["goals"][0]["text"]
    plain = (await pipeline.retrieve("when do we ship the beta?"))["result"]
    assert plain["intention"] is None
    assert plain["categories"] == []
    assert len(plain["hits"]) == 5


async def test_forgotten_memory_is_found_at_no_depth(pipeline: InMemoryPipeline) -> None:
    for turn_id in ("t-1", "t-2"):
        reply = await pipeline.command("forget", turn_id=turn_id, conversation_id="c1")
        assert reply["status"] == "ok"
    for query in ("when do we ship the beta?", "what was decided about the ledger?"):
        for how in ({}, {"depth": "auto"}, {"types": ITEMS}, {"types": ITEMS, "include_superseded": True}):
            result = (await pipeline.retrieve(query, top_k=100, **how))["result"]
            assert result["intention"] is None
            assert not {hit["turn_id"] for hit in result["hits"]} & {"t-1", "t-2"}
            assert all("items" not in hit for hit in result["hits"])


async def test_superseded_fact_is_found_only_on_demand(pipeline: InMemoryPipeline) -> None:
    for place, text in enumerate(("The deploy target is Heroku.", "The deploy target is fly.io now.")):
        moment = f"2026-03-0{place + 1}T10:00:00Z"
        await pipeline.remember(text, f"d-{place}", conversation_id="c2", occurred_at=moment)
    await pipeline.topics.settled()
    now = [hit["text"] for hit in await hits(pipeline, "deploy target", types=["semantic"])]
    assert any("fly.io" in text for text in now)
    assert not any("Heroku" in text for text in now)
    ever = [hit["text"] for hit in await hits(pipeline, "deploy target", types=["semantic"], include_superseded=True)]
    assert any("Heroku" in text for text in ever)
    turns = await hits(pipeline, "deploy target", types=["episodic", "semantic"])
    assert {"d-0", "d-1"} <= {hit["turn_id"] for hit in turns}, "the turn is unchanged"
    inside = [item["text"] for hit in turns for item in hit.get("items", ())]
    assert any("fly.io" in text for text in inside)
    assert not any("Heroku" in text for text in inside)
