"""The job that says whether a mode's own embedder finds more than `general`."""

import pytest

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.mode_commands import count_vectors, declare, remember_turn


async def test_a_mode_is_compared_and_the_result_is_kept(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", embedder="tiny32")
    for number in range(60):
        await remember_turn(
            pipeline, f"topic{number // 6} word{number}", conversation_id=f"c{number // 6}", mode="code"
        )
    stored = await count_vectors(pipeline)
    result = (await pipeline.command("compare_embedders", mode="code"))["result"]
    compared = result["compared"]["code"]
    assert compared["embedder"] == "tiny32"
    assert compared["turns"] == 60
    assert compared["conversations"] == 10
    assert 0 < compared["recall_at_10"] <= 1
    assert compared["verdict"] in ("better", "worse", "no_difference")
    assert await count_vectors(pipeline) == stored
    health = (await pipeline.command("health"))["result"]
    assert health["last_jobs"][0]["compared"] == result["compared"]


async def test_general_itself_and_few_turns_are_said(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "code", embedder="tiny32")
    await remember_turn(pipeline, "one turn", mode="code")
    few = (await pipeline.command("compare_embedders"))["result"]["compared"]
    same = (await pipeline.command("compare_embedders", mode="general"))["result"]["compared"]
    assert {name: comparison["verdict"] for name, comparison in few.items()} == {"code": "too_few_turns"}
    assert same["general"]["verdict"] == "same_embedder"


@pytest.mark.parametrize("unloaded", [False, True])
async def test_a_model_that_is_not_loaded_is_said(pipeline: InMemoryPipeline, unloaded: bool) -> None:
    await declare(pipeline, "code", embedder="tiny32")
    for number in range(2):
        await remember_turn(pipeline, f"word{number}", conversation_id="c", mode="code")
    if unloaded:
        pipeline.embedders.model("tiny32").unloaded = True
    else:
        pipeline.embedders.missing("tiny32")
    compared = (await pipeline.command("compare_embedders", mode="code"))["result"]["compared"]
    assert compared["code"]["verdict"] == "model_missing"
