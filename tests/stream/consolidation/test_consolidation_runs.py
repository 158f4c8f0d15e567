"""Consolidation runs: bounded, visible, resumable and unaffected by a kill."""

import asyncio
import gc
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.consolidation import consolidate as consolidating
from agents.rules.consolidation.distillation import cluster_turns
from schemas.messages.records import Record
from streams.bootstrap.prompts import CATEGORY_PROMPT
from streams.flow.consolidation import evolving
from streams.flow.consolidation.run_consolidations import RunConsolidations
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.consolidation import WATERED, consolidate, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline


async def test_run_is_bounded_and_the_next_continues(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    pipeline.settings = pipeline.settings.model_copy(update={"consolidation_seconds": 1e-9})
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
    async with pipeline.running():
        await remember_many(pipeline, 4)
        reply = await pipeline.ask(pipeline.names.consolidate, trigger)
        assert [warning["code"] for warning in reply["warnings"]] == ["unfinished"]
        assert reply["result"]["created"] == []
        assert reply["result"]["modes"]["general"]["left"] == 1
    pipeline.settings = pipeline.settings.model_copy(update={"consolidation_seconds": 60.0})
    async with pipeline.running():
        assert len((await consolidate(pipeline))["created"]) == 1


async def test_health_reports_a_running_consolidation(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4)
    pipeline.index.down()
    running = asyncio.create_task(consolidate(pipeline))
    await pipeline.until(lambda: bool(pipeline.jobs.under_way("u1")))
    [shown] = (await pipeline.command("health"))["result"]["jobs"]
    assert shown["command"] == "consolidate"
    assert shown["mode"] is None
    pipeline.index.up()
    assert len((await running)["created"]) == 1


SUBJECTS = ("tomatoes", "peppers", "lettuce", "violin", "bicycle")


async def remember_clusters(pipeline: InMemoryPipeline) -> None:
    for subject in SUBJECTS:
        await remember_many(pipeline, 3, f"Looked after my {subject} carefully before breakfast on {subject} day {{}}.")


def end_state(pipeline: InMemoryPipeline) -> dict[str, Any]:
    return {memory.memory_id: memory.model_dump(exclude={"embedding"}) for memory in pipeline.memories.all()}


@pytest.mark.parametrize("records", [0, 1, 2, 4, 5, 7])
async def test_interrupted_run_has_the_same_result(
    tmp_path: Path, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evolving, "CLUSTER_BATCH_SIZE", 2)
    pipeline = InMemoryPipeline(tmp_path / "one")
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
    async with pipeline.running():
        await remember_clusters(pipeline)
    whole = pipeline.copy_to(tmp_path / "two")
    async with whole.running():
        undisturbed = await consolidate(whole)
        await whole.topics.settled()
    assert len(undisturbed["created"]) == len(SUBJECTS)
    pipeline.topics.stop_after(records + 1)
    async with pipeline.running():
        await pipeline.publish(pipeline.names.consolidate, trigger)
        await pipeline.until(lambda: pipeline.topics.refused)
    pipeline.topics.stop_after(None)
    async with pipeline.running():
        await pipeline.topics.settled()
        last = json.loads(pipeline.topics.records(pipeline.names.consolidated)[-1].value or b"")
        assert sorted(last["created"]) == sorted(undisturbed["created"])
        assert sorted(last["superseded"]) == sorted(undisturbed["superseded"])
        assert (await consolidate(pipeline))["created"] == []
    assert end_state(pipeline) == end_state(whole)


async def test_run_that_had_ended_is_answered_again_as_before(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await remember_clusters(pipeline)
        await consolidate(pipeline)
        await pipeline.topics.settled()
    before = end_state(pipeline)
    pipeline.topics.forget_acknowledged(1, [pipeline.names.consolidate])
    async with pipeline.running():
        await pipeline.topics.settled()
    first, again = (json.loads(record.value or b"") for record in runs_told(pipeline))
    assert again["created"] == first["created"]
    assert again["superseded"] == first["superseded"]
    assert len(again["created"]) == len(SUBJECTS)
    assert end_state(pipeline) == before


async def test_run_that_had_ended_distils_nothing_of_what_was_forgotten_since(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await remember_many(pipeline, 1, WATERED.format(1), conversation_id="c0")
        await remember_many(pipeline, 3, WATERED.format("{}0"), conversation_id="c1")
        assert len((await consolidate(pipeline))["superseded"]) == 4
        await pipeline.command("forget", conversation_id="c0")
        await pipeline.topics.settled()
    before = end_state(pipeline)
    pipeline.topics.forget_acknowledged(1, [pipeline.names.consolidate])
    async with pipeline.running():
        await pipeline.topics.settled()
        assert len(runs_told(pipeline)) == 2
        assert end_state(pipeline) == before
        # What a run that was asked for anew does distil.
        assert len((await consolidate(pipeline))["superseded"]) == 3


def runs_told(pipeline: InMemoryPipeline) -> list[Record]:
    return [
        record
        for record in pipeline.topics.records(pipeline.names.consolidated)
        if b"consolidated.v1" in (record.value or b"")
    ]


async def test_spent_token_budget_defers_the_rest_to_the_next_run(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path, profiles=ONE_PROFILE)
    pipeline.settings = pipeline.settings.model_copy(update={"consolidation_tokens": 10})
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
    async with pipeline.running():
        await remember_many(pipeline, 4)
        reply = await pipeline.ask(pipeline.names.consolidate, trigger)
        assert [warning["code"] for warning in reply["warnings"]] == ["unfinished"]
        assert not [prompt for prompt in pipeline.language.asked if prompt.version == "distil-1"]


async def test_run_does_not_cluster_again_without_new_turns(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    clustered = []

    def noted(sources: Any, *given: Any) -> Any:
        clustered.append(len(sources))
        return cluster_turns(sources, *given)

    monkeypatch.setattr(consolidating, "cluster_turns", noted)
    await remember_many(pipeline, 4)
    await remember_many(pipeline, 1, "The violin needs a new bow.")
    for _ in range(3):
        await consolidate(pipeline)
    assert clustered == [5]
    await remember_many(pipeline, 1, "My sister moves to Lisbon.")
    await consolidate(pipeline)
    assert clustered == [5, 2]


async def test_turns_are_clustered_outside_the_event_loop(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    for name in ("cluster_turns", "digest_sources"):
        call = getattr(consolidating, name)

        def noted(*given: Any, call: Any = call) -> Any:
            threads.append(threading.current_thread())
            return call(*given)

        monkeypatch.setattr(consolidating, name, noted)
    await remember_many(pipeline, 4)
    assert len((await consolidate(pipeline))["created"]) == 1
    assert len(threads) == 3
    assert threading.current_thread() not in threads


async def test_clusters_beyond_the_planning_time_are_left_to_the_next_run(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evolving, "PLANNING_TIME_SHARE", 0.0)
    for speaker in ("Ana", "Ben"):
        await remember_many(pipeline, 3, speaker=speaker, conversation_id=speaker)
    runs = [await consolidate(pipeline) for _ in range(3)]
    assert [len(run["created"]) for run in runs] == [1, 1, 0]


async def test_categories_are_left_for_the_next_run_when_the_time_is_over(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    pipeline.settings = pipeline.settings.model_copy(update={"consolidation_seconds": 1e-9})
    async with pipeline.running():
        await pipeline.command("declare_category", name="tea", description="tea, green tea, coffee and milk")
        await pipeline.remember("I prefer green tea to coffee.")
        await pipeline.topics.settled()
        assert not [change for change in (await consolidate(pipeline))["diff"] if change["op"] == "refresh_category"]


async def test_category_summaries_use_the_runs_token_budget(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path, profiles=ONE_PROFILE)
    pipeline.settings = pipeline.settings.model_copy(update={"consolidation_tokens": 10})
    async with pipeline.running():
        await pipeline.command("declare_category", name="tea", description="tea, green tea, coffee and milk")
        await pipeline.remember("I prefer green tea to coffee.")
        await pipeline.topics.settled()
        pipeline.language.asked.clear()
        await consolidate(pipeline)
        assert not [prompt for prompt in pipeline.language.asked if prompt.version == CATEGORY_PROMPT]


async def test_finished_run_leaves_nothing_of_its_user(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4)
    await consolidate(pipeline)
    await pipeline.topics.settled()
    gc.collect()
    runs = [found for found in gc.get_objects() if isinstance(found, RunConsolidations)]
    assert runs
    assert [run for run in runs if len(run._locks)] == []
