"""A consolidation that first has due turns understood again: within its budget, once, where it is switched on."""

from pathlib import Path
from typing import Any

import pytest

from streams.flow.runs.recorder import RunOptions
from tests.fakes.language_model import ONE_PROFILE
from tests.stream.pipelines.test_editing import edit
from tests.worlds.consolidation import consolidate, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json
from tests.worlds.refreshed import (
    OTHER_PROMPT,
    TURNS,
    items,
    kept_partition,
    prepared,
    refreshed,
    settled,
    state,
    turns,
    with_other_prompt,
    with_profile,
)

TRIGGER: Json = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
OTHERS_OFF = [{"op": "remove", "step_id": f"evolve.{name}"} for name in ("summarise", "merge", "recluster")]
NOTHING = {"processed": 0, "failed": 0, "remaining": 0, "calls": 0, "tokens": 0}


def refresh_items(**config: Any) -> Json:
    return {"op": "config", "step_id": "evolve.refresh_items", "config": config, "enabled": True}


async def switch_on(pipeline: InMemoryPipeline, **config: Any) -> None:
    """Have consolidations understand turns again, and nothing else."""
    assert (await edit(pipeline, refresh_items(**config), *OTHERS_OFF))["status"] == "ok"


def ids(diff: list[Json], op: str) -> set[str]:
    return {memory["memory_id"] for memory in diff if memory["op"] == op}


async def test_consolidation_changes_what_a_refresh_does_and_says_so(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before", ONE_PROFILE)
    expected_pipeline = with_other_prompt(await prepared(tmp_path / "expected", ONE_PROFILE), tmp_path / "prompts")
    async with expected_pipeline.running():
        expected, _ = await refreshed(expected_pipeline)
        expected_state = await state(expected_pipeline)
    with_other_prompt(pipeline, tmp_path / "prompts")
    async with pipeline.running():
        plain = await consolidate(pipeline)
        assert "refreshed" not in plain, "the step is switched off in the release"
        understood = [prompt for prompt in pipeline.language.asked if prompt.version.startswith("understand")]
        assert len(understood) == TURNS
        await switch_on(pipeline)
        result = await consolidate(pipeline)
        await settled(pipeline)
        assert result["refreshed"] == NOTHING | {"processed": TURNS, "calls": TURNS, "tokens": expected["tokens"]}
        assert ids(result["diff"], "add_item") == set(expected["added"])
        assert ids(result["diff"], "remove_item") == set(expected["removed"])
        texts = {memory["memory_id"]: memory["after"] for memory in result["diff"]}
        assert {texts[memory_id] for memory_id in expected["added"]} == {
            items(pipeline)[memory_id].text for memory_id in expected["added"]
        }
        assert await state(pipeline) == expected_state
        assert (await consolidate(pipeline))["refreshed"] == NOTHING


@pytest.mark.parametrize("after", [2, 7, 12, 20])
async def test_killed_consolidation_goes_on_and_counts_everything_once(tmp_path: Path, after: int) -> None:
    pipeline = with_other_prompt(await prepared(tmp_path / "before", ONE_PROFILE), tmp_path / "prompts")
    async with pipeline.running():
        await switch_on(pipeline)
    before = items(pipeline)
    pipeline.topics.stop_after(after)
    async with pipeline.running():
        await pipeline.publish(pipeline.names.consolidate, TRIGGER)
        await pipeline.until(lambda: pipeline.topics.refused)
    pipeline.topics.stop_after(None)
    async with pipeline.running():
        await settled(pipeline)
        [last] = (await pipeline.command("health"))["result"]["last_jobs"]
        result = (await pipeline.command("get_job", job_id=last["job_id"]))["result"]["result"]
        assert result["refreshed"]["processed"] == TURNS
        assert result["refreshed"]["calls"] == TURNS
        assert result["refreshed"]["tokens"] == 2 * TURNS
        assert ids(result["diff"], "add_item") == items(pipeline).keys() - before.keys()
        assert ids(result["diff"], "remove_item") == before.keys() - items(pipeline).keys()
        assert (await consolidate(pipeline))["refreshed"] == NOTHING
        assert {turn.reading.prompt for turn in turns(pipeline)} == {OTHER_PROMPT}
        await state(pipeline)


async def test_budget_leaves_the_rest_for_the_next_run_and_says_so(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        await switch_on(pipeline, calls=4)
        reply = await pipeline.ask(pipeline.names.consolidate, TRIGGER)
        assert [warning["code"] for warning in reply["warnings"]] == ["unfinished"]
        assert "4 calls are the limit" in reply["warnings"][0]["message"]
        assert reply["result"]["refreshed"]["calls"] == 4
        assert reply["result"]["refreshed"]["remaining"] == TURNS - 4
        await settled(pipeline)
        reply = await pipeline.ask(pipeline.names.consolidate, TRIGGER)
        assert reply["result"]["refreshed"]["processed"] == TURNS - 4
        assert reply["warnings"] == []


async def test_tokens_of_the_step_are_those_of_the_run(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        await switch_on(pipeline)
        await edit(pipeline, {"op": "config", "step_id": "evolve.select", "config": {"tokens": 4500}})
        reply = await pipeline.ask(pipeline.names.consolidate, TRIGGER)
        assert 0 < reply["result"]["refreshed"]["processed"] < TURNS
        assert "4500 tokens are the limit" in reply["warnings"][0]["message"]


async def test_what_the_step_spends_is_gone_for_the_summaries_of_the_run(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before")
    async with pipeline.running():
        await remember_many(pipeline, 4)
    with_profile(pipeline).language.tokens_in = 20_000
    async with pipeline.running():
        await edit(pipeline, refresh_items(calls=5))
        await edit(pipeline, {"op": "config", "step_id": "evolve.select", "config": {"tokens": 100_000}})
        result = await consolidate(pipeline)
        assert result["refreshed"]["tokens"] == 100_005
        assert result["created"] == []
        assert result["modes"]["general"]["left"] == 1


async def test_time_of_a_run_ends_the_step(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before")
    async with pipeline.running():
        await switch_on(pipeline)
        await edit(pipeline, {"op": "config", "step_id": "evolve.select", "config": {"seconds": 1e-9}})
        reply = await pipeline.ask(pipeline.names.consolidate, TRIGGER)
        assert reply["result"]["refreshed"] == NOTHING | {"remaining": TURNS}
        assert "time limit" in reply["warnings"][0]["message"]


async def test_without_a_model_rules_read_turns_of_the_scope_and_mode(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before")
    kept = next(iter(items(pipeline).values()))
    assert kept.item is not None
    [support] = kept.item.supports
    supports = (support.model_copy(update={"confidence": 0.1}),)
    outdated = kept.model_copy(update={"item": kept.item.model_copy(update={"supports": supports})})
    pipeline.memories.put(kept_partition(pipeline, kept), outdated)
    async with pipeline.running():
        await pipeline.command("declare_mode", name="code", embedder="tiny32")
        await switch_on(pipeline)
        for other in ({"mode": "code"}, {"project_id": "other"}):
            assert (await consolidate(pipeline, **other))["refreshed"] == NOTHING
        result = await consolidate(pipeline)
        assert result["refreshed"] == NOTHING | {"processed": 1}
        assert ids(result["diff"], "change_item") == {kept.memory_id}
        assert items(pipeline)[kept.memory_id].item == kept.item


async def test_run_has_the_step_and_its_calls_are_in_runs_of_their_turns(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    pipeline.run_options = RunOptions(sample=1)
    async with pipeline.running():
        await switch_on(pipeline)
        await consolidate(pipeline)
        await settled(pipeline)
        runs = (await pipeline.command("list_runs"))["result"]["runs"]
    [run] = [run for run in runs if run["part"] == "consolidate"]
    assert "evolve.refresh_items" in [step["step"] for step in run["steps"]]
    assert run["outcome"]["refreshed"]["tokens"] == 2 * TURNS
    asked = [call for run in runs if run["part"] == "understand" for call in run["models"]]
    assert sum(call["tokens_in"] + call["tokens_out"] for call in asked) == 2 * TURNS


async def test_custom_steps_behind_it_narrow_the_turns_of_a_run(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path).running() as pipeline:
        own = {"step_id": "evolve.days", "implementation": "tests.builders.custom_steps.NothingOfMonday"}
        before_summaries = {"op": "insert_before", "at": "evolve.summarise", **own}
        assert (await edit(pipeline, before_summaries))["status"] == "ok"
        for day in ("Monday", "Tuesday", "Wednesday", "Thursday"):
            await pipeline.remember(f"Watered the tomatoes in the greenhouse on {day}, they look healthy.")
        await pipeline.topics.settled()
        assert (await consolidate(pipeline))["modes"]["general"]["turns"] == 3
