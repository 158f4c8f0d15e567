"""A consolidation adjusts the intention: what was reached, lifted, or is past its own last day, with its evidence."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.models.language import Profiles, Prompt
from streams.wire.partitioning import partition_of
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.consolidation import consolidate
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

GOAL, REACHED = "We want to ship the beta in May.", "The beta is with the customers since Monday."
FREEZE = "No deploys until 20 February 2026."
SHIPPED = "We shipped the beta."
ADJUSTED = ("resolve_entry", "expire_entry")


async def adjusted(pipeline: InMemoryPipeline) -> list[Json]:
    """Consolidate, and return what it says about entries that are done."""
    diff = (await consolidate(pipeline))["diff"]
    await pipeline.topics.settled()
    return [change for change in diff if change["op"] in ADJUSTED]


async def intention(pipeline: InMemoryPipeline, project: str = "default") -> Json:
    return dict((await pipeline.command("get_intention", project=project))["result"])


async def say(pipeline: InMemoryPipeline, *texts: str, **fields: Any) -> None:
    for number, text in enumerate(texts):
        await pipeline.remember(text, text, occurred_at=f"2026-02-0{number + 1}T09:00:00Z", **fields)
    await pipeline.topics.settled()


def first_entry_by_last_turn(prompt: Prompt) -> dict[str, Any]:
    """Answer that the last turn of the prompt reports its first entry done; nothing of other prompts."""
    turns = prompt.user.count('"id": "t')
    return {"resolved": [{"entry": "e1", "turn": f"t{turns}"}]} if turns else {}


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path / "data", profiles=ONE_PROFILE).running() as pipeline:
        pipeline.language.answers = first_entry_by_last_turn
        yield pipeline


async def test_constraint_past_its_own_last_day_has_expired(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, FREEZE)
    [change] = await adjusted(pipeline)
    assert change == {"op": "expire_entry", "name": "constraints", "before": FREEZE, "after": None}


async def test_expired_constraint_is_resolved_with_its_time(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, FREEZE)
    await adjusted(pipeline)
    shown = await intention(pipeline)
    assert [entry["text"] for entry in shown["constraints"]] == []
    assert [entry["text"] for entry in shown["resolved"] if entry["expired_at"]] == [FREEZE]


async def test_expired_constraint_stays_so_when_its_turn_comes_again(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, FREEZE)
    await adjusted(pipeline)
    await say(pipeline, FREEZE)
    assert (await intention(pipeline))["constraints"] == []


async def test_constraint_without_an_end_stays(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, "The API must answer within 200 ms.")
    assert await adjusted(pipeline) == []


async def test_second_run_adjusts_nothing(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, FREEZE)
    await adjusted(pipeline)
    assert await adjusted(pipeline) == []


async def test_goal_of_the_whole_user_is_reached_by_a_turn_of_a_project(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("set_intention", project="*", goals=["ship the beta"])
    await pipeline.remember(SHIPPED, occurred_at="2026-03-02T09:00:00Z")
    await pipeline.topics.settled()
    [change] = await adjusted(pipeline)
    assert change["op"] == "resolve_entry"
    assert change["name"] == "whole_user.goals"
    assert change["after"] == SHIPPED
    assert (await intention(pipeline, "*"))["goals"] == []


async def test_forgetting_the_turn_opens_the_goal_of_the_whole_user_again(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("set_intention", project="*", goals=["ship the beta"])
    await pipeline.remember(SHIPPED, "t-9", occurred_at="2026-03-02T09:00:00Z")
    await pipeline.topics.settled()
    await adjusted(pipeline)
    await pipeline.command("forget", turn_id="t-9", conversation_id="c1")
    await pipeline.topics.settled()
    assert [goal["text"] for goal in (await intention(pipeline, "*"))["goals"]] == ["ship the beta"]
    here = partition_of(b"u1", pipeline.partitions)
    assert pipeline.intentions.get(here, {"user_id": "u1", "project_id": "*"}).signs == ()


async def test_model_finds_a_goal_reached_with_the_turn_that_says_so(asking: InMemoryPipeline) -> None:
    await say(asking, GOAL, REACHED)
    [change] = await adjusted(asking)
    assert change["op"] == "resolve_entry"
    assert change["before"] == GOAL
    assert change["after"] == REACHED
    assert (await intention(asking))["goals"] == []


async def test_turn_that_comes_again_leaves_what_the_model_found(asking: InMemoryPipeline) -> None:
    await say(asking, GOAL, REACHED)
    await adjusted(asking)
    await say(asking, GOAL, REACHED)
    assert (await intention(asking))["goals"] == []


async def test_model_reads_no_turn_twice(asking: InMemoryPipeline) -> None:
    await say(asking, GOAL, REACHED)
    await adjusted(asking)
    asked = len(asking.language.asked)
    await adjusted(asking)
    assert len(asking.language.asked) == asked


async def test_model_reads_turns_later_that_it_could_not_read(asking: InMemoryPipeline) -> None:
    await say(asking, GOAL, REACHED)
    asking.language.become("wrong")
    assert await adjusted(asking) == []
    asking.language.become("ok")
    assert [change["op"] for change in await adjusted(asking)] == ["resolve_entry"]


async def test_model_resolves_nothing_that_was_set(asking: InMemoryPipeline) -> None:
    await asking.command("set_intention", goals=["ship the beta"])
    await asking.remember(REACHED, occurred_at="2026-03-02T09:00:00Z")
    await asking.topics.settled()
    assert await adjusted(asking) == []


async def test_private_turn_is_not_shown_to_the_model(asking: InMemoryPipeline) -> None:
    await say(asking, GOAL)
    await asking.remember(REACHED, private=True, occurred_at="2026-02-02T09:00:00Z")
    await asking.topics.settled()
    await adjusted(asking)
    assert not any(REACHED in prompt.user for prompt in asking.language.asked)


async def test_step_that_is_off_adjusts_nothing(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path / "data", profiles=Profiles()).running() as pipeline:
        edits = [{"op": "config", "step_id": "evolve.adjust_intention", "enabled": False}]
        await pipeline.command("edit_pipeline", edits=edits)
        await say(pipeline, FREEZE)
        assert await adjusted(pipeline) == []
