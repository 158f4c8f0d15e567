"""Run records of a worker: what each pipeline's run has, and what `list_runs` shows of them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents.ports.commands import RunPage
from schemas.models.language import Profile, Profiles
from streams.flow.runs.recorder import RunOptions
from tests.stream.pipelines.test_editing import REDACT, edit
from tests.worlds.consolidation import remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message, turn_message
from tests.worlds.in_memory_run_log import InMemoryRunLog
from tests.worlds.mode_commands import remember_turn

Json = dict[str, Any]

USER: Json = {"user_id": "u1"}
TEXT = "We decided to deploy to fly.io on Monday."


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A worker with a language model, whose runs are all recorded."""
    profiles = Profiles({"default": Profile(model="fake/model")})
    world = InMemoryPipeline(tmp_path, profiles=profiles, run_options=RunOptions(sample=1))
    async with world.running():
        yield world


async def listed(world: InMemoryPipeline, user: str = "u1", **arguments: Any) -> list[Json]:
    reply = await world.command("list_runs", user, **arguments)
    return list(reply["result"]["runs"])


def steps(run: Json) -> list[str]:
    return [step["step"] for step in run["steps"]]


async def test_a_turn_is_a_run_of_parts_that_its_memory_links(pipeline: InMemoryPipeline) -> None:
    await pipeline.ask(pipeline.names.turns, turn_message(TEXT, "t1"))
    await pipeline.until(lambda: pipeline.memory(TEXT).reading.status == "model")
    await pipeline.topics.settled()
    [memory_id] = [memory.memory_id for memory in pipeline.memories.all() if memory.origin == "said"]
    runs = {run["part"]: run for run in await listed(pipeline, memory_id=memory_id)}
    assert {"accept", "index", "understand"} <= runs.keys() <= {"accept", "index", "understand", "intend", "categorize"}
    assert runs["accept"]["revision"] == {"number": 0, "hash": pipeline.pipelines.in_force()[1]}
    assert steps(runs["accept"]) == ["memorize.ingest", "memorize.extract_items", "memorize.merge_items"]
    assert steps(runs["index"]) == ["memorize.index", "memorize.index_write"]
    assert steps(runs["understand"]) == ["memorize.understand"]
    [model] = runs["understand"]["models"]
    assert model["profile"] == "default"
    assert model["tokens_in"] == 1
    assert model["tokens_out"] == 1
    assert not any(b"fly.io" in (record.value or b"") for record in pipeline.topics.records(pipeline.names.runs))


async def test_a_model_call_has_the_name_of_its_step_whichever_profile_the_pipelines_choose(tmp_path: Path) -> None:
    model = Profile(model="fake/model")
    world = InMemoryPipeline(
        tmp_path, profiles=Profiles({"default": model, "fast": model}), run_options=RunOptions(sample=1)
    )
    async with world.running() as pipeline:
        for step in ("memorize.understand", "retrieve.rerank"):
            await edit(pipeline, {"op": "config", "step_id": step, "config": {"profile": "fast"}})
        await pipeline.ask(pipeline.names.turns, turn_message(TEXT, "t1"))
        await pipeline.ask(pipeline.names.turns, turn_message(f"{TEXT} Really.", "t2"))
        await pipeline.until(lambda: pipeline.memory(TEXT).reading.status == "model")
        question = {"schema": "retrieve.v1", "scope": USER, "query": "Where to deploy?", "rerank": True}
        await pipeline.ask(pipeline.names.retrieve, question)
        await pipeline.topics.settled()
        calls = {(model["step"], model["profile"]) for run in await listed(pipeline) for model in run.get("models", ())}
    assert calls == {("memorize.understand", "fast"), ("retrieve.rerank", "fast")}


async def test_questions_and_contexts_have_their_steps(pipeline: InMemoryPipeline) -> None:
    accepted = await remember_turn(pipeline, TEXT)
    await pipeline.ask(pipeline.names.retrieve, {"schema": "retrieve.v1", "scope": USER, "query": "Where to?"})
    await pipeline.ask(pipeline.names.retrieve, {"schema": "assemble.v1", "scope": USER, "query": "Where to?"})
    context, question = await listed(pipeline, pipeline="retrieve")
    found = ["retrieve.receive", "retrieve.wait", "retrieve.recall", "retrieve.rank"]
    assert steps(question) == found
    assert steps(context) == [*found, "retrieve.build_context"]
    assert question["outcome"]["hits_ids"] == [accepted["memory_id"]]
    assert context["outcome"]["memories"] == 1


async def test_a_model_that_orders_no_hits_is_in_the_record(tmp_path: Path) -> None:
    profiles = Profiles({"default": Profile(model="fake/model")})
    world = InMemoryPipeline(tmp_path, profiles=profiles)
    async with world.running() as pipeline:
        for number in range(2):
            await remember_turn(pipeline, f"{TEXT} {number}")
        pipeline.language.become("wrong")
        question = {"schema": "retrieve.v1", "scope": USER, "query": "Where to?", "rerank": True}
        await pipeline.ask(pipeline.names.retrieve, question)
        [run] = await listed(pipeline, pipeline="retrieve")
    assert run["warnings"] == ["not_reranked"]
    assert [(model["step"], model["failure"]) for model in run["models"]] == [("retrieve.rerank", "unanswerable")]
    assert "retrieve.rerank" in steps(run)


async def test_a_consolidation_is_a_run(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 5)
    trigger = {"schema": "consolidate.v1", "scope": USER, "mode": None}
    answered = (await pipeline.ask(pipeline.names.consolidate, trigger))["result"]
    [run] = await listed(pipeline, pipeline="evolve")
    assert run["part"] == "consolidate"
    assert run["kind"] == "consolidate.v1"
    assert steps(run)[:3] == ["evolve.receive", "evolve.select", "evolve.summarise"]
    assert steps(run)[-2:] == ["evolve.adjust_intention", "evolve.emit_diff"]
    assert run["outcome"]["created_ids"] == answered["created"]
    assert run["outcome"]["turns"] >= 5


async def test_refused_requests_are_listed_for_their_user_alone(pipeline: InMemoryPipeline) -> None:
    await pipeline.ask(pipeline.names.retrieve, {"schema": "retrieve.v1", "scope": USER, "query": "x", "top_k": 0})
    [run] = await listed(pipeline, failed=True)
    assert run["failure"]["code"] == "invalid_value"
    assert run["failure"]["field"] == "top_k"
    assert await listed(pipeline, "u2") == []


@pytest.mark.parametrize(("texts", "left"), [(False, ["accept"]), (True, [])])
async def test_forgetting_hides_runs_that_may_have_texts_or_are_of_the_user(
    tmp_path: Path, *, texts: bool, left: list[str]
) -> None:
    world = InMemoryPipeline(tmp_path, run_options=RunOptions(sample=1, texts=texts))
    async with world.running() as pipeline:
        memory_id = (await remember_turn(pipeline, TEXT))["memory_id"]
        await pipeline.command("forget", memory_id=memory_id)
        runs = [run["part"] for run in await listed(pipeline, memory_id=memory_id)]
        assert [part for part in runs if part == "accept"] == left
        everything = {**command_message("forget"), "arguments": {"user": True}}
        await pipeline.ask(pipeline.names.commands, everything)
        assert await listed(pipeline) == []
        await remember_turn(pipeline, "The cat sleeps.")
        assert "accept" in [run["part"] for run in await listed(pipeline)]


async def test_a_list_of_runs_holds_up_no_other_command(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read, newest = asyncio.Event(), InMemoryRunLog.newest

    async def slow(log: InMemoryRunLog, *where: Any) -> RunPage:
        await may_read.wait()
        return await newest(log, *where)

    monkeypatch.setattr(InMemoryRunLog, "newest", slow)
    listing = asyncio.create_task(listed(pipeline))
    await pipeline.until(lambda: bool(pipeline.topics.records(pipeline.names.commands)))
    for user in ("u1", "u2"):
        assert (await pipeline.command("list_modes", user))["status"] == "ok"
    assert not listing.done()
    may_read.set()
    assert await listing == []


async def test_custom_steps_and_their_revision_are_in_the_record(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path, run_options=RunOptions(sample=1, texts=True))
    async with world.running() as pipeline:
        await edit(pipeline, REDACT)
        await pipeline.ask(pipeline.names.turns, turn_message("Pay with 4111 1111 1111 1111 please.", "t1"))
        [accepted] = [run for run in await listed(pipeline) if run["part"] == "accept"]
    assert accepted["revision"]["number"] == 1
    assert steps(accepted)[:2] == ["memorize.ingest", "memorize.redact"]
    assert not any(b"4111" in (record.value or b"") for record in pipeline.topics.records(pipeline.names.runs))


async def test_calls_of_a_refresh_are_in_runs_of_their_turns_beside_the_first(pipeline: InMemoryPipeline) -> None:
    await pipeline.ask(pipeline.names.turns, turn_message(TEXT, "t1"))
    await pipeline.until(lambda: pipeline.memory(TEXT).reading.status == "model")
    await edit(pipeline, {"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 5}})
    result = (await pipeline.command("refresh", before_revision=1))["result"]
    memory_id = pipeline.memory(TEXT).memory_id
    again, first = [run for run in await listed(pipeline, memory_id=memory_id) if run["part"] == "understand"]
    assert steps(again) == ["memorize.understand"]
    assert again["outcome"]["job_id"] == result["job_id"]
    assert "job_id" not in first["outcome"]
    assert again["run_id"] != first["run_id"]
    [call] = again["models"]
    assert call["profile"] == "default"
    assert call["tokens_in"] + call["tokens_out"] == result["tokens"]
