"""Settings of built-in steps, in the whole pipeline; and refusals that say what depends on a step."""

from pathlib import Path

import pytest

from tests.fakes.language_model import ONE_PROFILE
from tests.stream.pipelines.test_custom_steps import said
from tests.stream.pipelines.test_editing import edit, step_of
from tests.worlds.consolidation import consolidate, of_origin
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json


def config(step_id: str, **config: object) -> Json:
    return {"op": "config", "step_id": step_id, "config": config}


async def test_items_are_bounded_by_number_and_confidence(pipeline: InMemoryPipeline) -> None:
    text = "I live in Lisbon with my family since 2019. I love hiking in the mountains."
    await edit(pipeline, config("memorize.extract_items", max_items=1))
    await said(pipeline, text, "t1")
    await pipeline.topics.settled()
    assert len(of_origin(pipeline, "extracted")) == 1
    await edit(pipeline, config("memorize.extract_items", min_confidence=1.0))
    await said(pipeline, "I work at a bakery in Porto.", "t2")
    await pipeline.topics.settled()
    assert len(of_origin(pipeline, "extracted")) == 1


async def test_nothing_below_the_score_is_a_hit(pipeline: InMemoryPipeline) -> None:
    await said(pipeline, "The lantern is red.")
    await edit(pipeline, config("retrieve.rank", min_score=1.0))
    assert await pipeline.texts("lantern") == []


async def test_memory_without_a_word_of_the_question_has_to_be_similar(pipeline: InMemoryPipeline) -> None:
    await said(pipeline, "The lantern is red.", "t1")
    await said(pipeline, "Nothing else is here.", "t2")
    await pipeline.topics.settled()
    assert len(await pipeline.texts("lantern")) == 2
    await edit(pipeline, config("retrieve.recall", min_similarity=1.0, top_k=10))
    assert await pipeline.texts("lantern") == ["The lantern is red."]


async def test_items_in_other_words_are_merged_from_the_share_that_is_set(pipeline: InMemoryPipeline) -> None:
    for number, text in enumerate(("I prefer green tea in the morning.", "I prefer green tea in the early morning.")):
        await said(pipeline, text, f"t{number}")
    await pipeline.topics.settled()
    assert [each for each in (await consolidate(pipeline))["diff"] if each["op"] == "merge"] == []
    await edit(pipeline, config("evolve.merge", similarity=0.7))
    merged = [each for each in (await consolidate(pipeline))["diff"] if each["op"] == "merge"]
    assert len(merged) == 1


async def test_summary_needs_as_many_turns_as_are_set(pipeline: InMemoryPipeline) -> None:
    for number in range(3):
        await said(pipeline, "Watered the tomatoes in the greenhouse today.", f"t{number}",
                   occurred_at=f"2026-02-{number + 1:02}T08:00:00Z")  # fmt: skip
    await pipeline.topics.settled()
    await edit(pipeline, config("evolve.summarise", min_turns=4))
    assert (await consolidate(pipeline))["created"] == []
    await edit(pipeline, config("evolve.summarise", min_turns=None))
    assert len((await consolidate(pipeline))["created"]) == 1


async def test_step_that_asks_a_model_by_default_needs_one(pipeline: InMemoryPipeline, tmp_path: Path) -> None:
    for wanted in (config("retrieve.rerank", by_default=True), config("retrieve.route", by_model=True)):
        error = (await edit(pipeline, wanted))["error"]
        assert error["message"].startswith("rule capability_unavailable: ")
    async with InMemoryPipeline(tmp_path / "with", profiles=ONE_PROFILE).running() as world:
        assert (await edit(world, config("retrieve.rerank", by_default=True)))["result"]["revision"] == 1


@pytest.mark.parametrize(
    ("wanted", "rule"),
    [
        ({"op": "remove", "step_id": "memorize.merge_items"}, "step_is_fixed"),
        ({"op": "replace", "step_id": "retrieve.rank", "implementation": "tests.builders.custom_steps.Reverse"},
         "not_replaceable"),
    ],
)  # fmt: skip
async def test_refusal_says_what_depends_on_the_step(pipeline: InMemoryPipeline, wanted: Json, rule: str) -> None:
    promise = step_of(await pipeline.command("get_pipeline"), wanted["step_id"])["promise"]
    message = (await edit(pipeline, wanted))["error"]["message"]
    assert message.startswith(f"rule {rule}: ")
    assert promise in message
