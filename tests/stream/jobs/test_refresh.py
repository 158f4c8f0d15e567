"""Turns that are understood again: those that are due, within a budget, once, and with what has changed."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.rules.text.sentences import split_sentences
from schemas.models.language import Profiles, Prompt
from schemas.state.memories import Memory
from streams.bootstrap.prompts import PROJECT_PROMPTS
from streams.flow.steps import refresh
from streams.wire.partitioning import partition_of
from tests.fakes.language_model import ONE_PROFILE, FakeLanguageModel
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message

SAMPLE = Path(__file__).parents[3] / "training" / "ranking" / "conversations" / "conv-code.json"
SHOWN_TURN = re.compile(r"<<< (\w+) turn\n(.*?)\n>>> \1", re.DOTALL)
OTHER_PROMPT = "understand-other"
OTHER_CHOSEN = {"understand": OTHER_PROMPT}
TURNS = 6
FORGET_USER = {**command_message("forget"), "arguments": {"user": True}}


def sample_turns(turns: int = TURNS) -> list[Json]:
    """Return the first turns of a sample conversation, as messages."""
    said = json.loads(SAMPLE.read_text())["conversation"]["session_1"][:turns]
    return [
        turn_message(one["text"], one["dia_id"], role="assistant" if one["speaker"] == "Assistant" else "user")
        for one in said
    ]


def known_answer(prompt: Prompt) -> Json:
    """Find facts in the first sentences of a turn, in others with the other prompt, and a goal with the first alone."""
    found = SHOWN_TURN.search(prompt.user)
    assert found is not None
    sentences = [one.strip() for one in split_sentences(found[2]) if len(one.split()) > 3]
    is_other = prompt.version == OTHER_PROMPT
    items = [
        {"kind": "fact", "text": f"Noted: {one}", "quote": one}
        for one in (sentences[1:3] if is_other else sentences[:2])
    ]
    goals = {} if is_other else {"intention": {"goals": [f"goal of {sentences[0][:40]}"]}}
    return {"topic": prompt.version, "entities": [prompt.version], "items": items, **goals}


def with_profile(pipeline: InMemoryPipeline) -> InMemoryPipeline:
    """Give a stopped pipeline a language model with known answers."""
    pipeline.profiles = ONE_PROFILE
    pipeline.settings = pipeline.settings.model_copy(update={"llm_profiles": ONE_PROFILE})
    pipeline.language = FakeLanguageModel(known_answer, ONE_PROFILE)
    return pipeline


def with_other_prompt(
    pipeline: InMemoryPipeline, directory: Path, chosen: Mapping[str, str] = OTHER_CHOSEN
) -> InMemoryPipeline:
    """Have a stopped pipeline understand turns by another template."""
    directory.mkdir(exist_ok=True)
    (directory / f"{OTHER_PROMPT}.md").write_text((PROJECT_PROMPTS / "understand-1.md").read_text())
    settings = {"prompts": directory, "prompt_versions": dict(chosen)}
    pipeline.settings = pipeline.settings.model_copy(update=settings)
    return pipeline


async def prepared(directory: Path, profiles: Profiles | None = None) -> InMemoryPipeline:
    """Return a stopped pipeline that has understood the sample turns."""
    pipeline = InMemoryPipeline(directory)
    if profiles is not None:
        with_profile(pipeline)
    async with pipeline.running():
        for message in sample_turns():
            await pipeline.ask(pipeline.names.turns, message)
        await settled(pipeline)
    return pipeline


async def settled(pipeline: InMemoryPipeline) -> None:
    def done() -> bool:
        memories = list(pipeline.memories.all())
        return all(one.embedding.status == "ready" and one.reading.status != "pending" for one in memories)

    await pipeline.topics.settled()
    await pipeline.until(done)
    await pipeline.topics.settled()


def items(pipeline: InMemoryPipeline) -> dict[str, Memory]:
    return {one.memory_id: one for one in pipeline.memories.all() if one.origin == "extracted"}


def turns(pipeline: InMemoryPipeline) -> list[Memory]:
    return [one for one in pipeline.memories.all() if one.origin == "said"]


async def state(pipeline: InMemoryPipeline) -> Json:
    """Return what was understood: turns, items, their vectors and words, and the intention."""
    space = pipeline.space("general", "general")
    ids = [one.memory_id for one in pipeline.memories.all()]
    counted = [await pipeline.index.count(space, partition) for partition in range(pipeline.partitions)]
    assert (await pipeline.index.hashes(space, ids)).keys() == {*ids}
    assert sum(counted) == len(ids), "no vector is left of what is gone"
    shown = (await pipeline.command("get_intention"))["result"]
    return {
        "turns": {
            one.memory_id: (one.reading.model, one.reading.topic, one.entities, one.items) for one in turns(pipeline)
        },
        "items": {key: (one.text, one.evidence, one.superseded_by) for key, one in items(pipeline).items()},
        "goals": sorted(one["text"] for one in shown["goals"]),
    }


async def refreshed(pipeline: InMemoryPipeline, **arguments: Any) -> tuple[Json, list[str]]:
    """Run a refresh; return its result and the codes of its warnings."""
    reply = await pipeline.command("refresh", **arguments)
    assert reply["status"] == "ok", reply
    await settled(pipeline)
    return dict(reply["result"]), [one["code"] for one in reply["warnings"]]


async def test_turns_from_before_a_profile_are_understood_as_if_it_had_been_there(tmp_path: Path) -> None:
    expected_pipeline = await prepared(tmp_path / "expected", ONE_PROFILE)
    async with expected_pipeline.running():
        expected = await state(expected_pipeline)
    pipeline = with_profile(await prepared(tmp_path / "before"))
    before = items(pipeline)
    async with pipeline.running():
        await settled(pipeline)
        assert pipeline.language.asked == [], "nothing is understood again by itself"
        first, warnings = await refreshed(pipeline, max_calls=3)
        assert (first["by"], first["total"], first["processed"], first["remaining"]) == ("default", TURNS, 3, TURNS - 3)
        assert (first["calls"], first["tokens"], warnings) == (3, 6, ["unfinished"])
        second, warnings = await refreshed(pipeline)
        assert (second["processed"], second["remaining"], warnings) == (TURNS - 3, 0, [])
        third, _ = await refreshed(pipeline)
        assert (third["total"], third["items_added"], third["calls"]) == (0, 0, 0)
        assert len(pipeline.language.asked) == TURNS
        assert await state(pipeline) == expected
    added = {*first["added"], *second["added"]}
    assert added == items(pipeline).keys() - before.keys()
    assert first["items_added"] + second["items_added"] == len(added)


async def test_what_the_new_answer_does_not_have_is_gone_with_all_that_followed_from_it(tmp_path: Path) -> None:
    expected_pipeline = await prepared(tmp_path / "expected")
    with_other_prompt(with_profile(expected_pipeline), tmp_path / "prompts")
    async with expected_pipeline.running():
        await refreshed(expected_pipeline)
        expected = await state(expected_pipeline)
    pipeline = await prepared(tmp_path / "before", ONE_PROFILE)
    before = items(pipeline)
    with_other_prompt(pipeline, tmp_path / "prompts")
    async with pipeline.running():
        assert (await state(pipeline))["goals"] != []
        result, _ = await refreshed(pipeline)
        assert await state(pipeline) == expected
        gone = before.keys() - items(pipeline).keys()
        assert len(gone) > 2
        assert set(result["removed"]) == gone
        assert set(result["added"]) == items(pipeline).keys() - before.keys()
        hits = (await pipeline.retrieve("noted", types=["semantic"], top_k=100))["result"]["hits"]
        assert gone.isdisjoint(hit["memory_id"] for hit in hits)


@pytest.mark.parametrize("after", [2, 7, 12, 20])
async def test_killed_refresh_goes_on_and_counts_everything_once(tmp_path: Path, after: int) -> None:
    pipeline = with_other_prompt(await prepared(tmp_path / "before", ONE_PROFILE), tmp_path / "prompts")
    before = items(pipeline)
    await pipeline.publish(pipeline.names.commands, command_message("refresh"))
    pipeline.topics.stop_after(after)
    async with pipeline.running():
        await pipeline.until(lambda: pipeline.topics.refused)
    pipeline.topics.stop_after(None)
    async with pipeline.running():
        await settled(pipeline)
        [last] = (await pipeline.command("health"))["result"]["last_jobs"]
        found = (await pipeline.command("get_job", job_id=last["job_id"]))["result"]
        again, _ = await refreshed(pipeline)
        result = found["result"]
        assert (result["processed"], result["calls"], again["total"]) == (TURNS, TURNS, 0)
        assert set(result["added"]) == items(pipeline).keys() - before.keys()
        assert set(result["removed"]) == before.keys() - items(pipeline).keys()
        assert {one.reading.prompt for one in turns(pipeline)} == {OTHER_PROMPT}
        await state(pipeline)


async def test_budget_of_tokens_leaves_the_rest_for_the_next_call(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        result, warnings = await refreshed(pipeline, max_tokens=10)
        assert (result["processed"], result["remaining"], warnings) == (0, TURNS, ["unfinished"])
        assert pipeline.language.asked == []
        reply = await pipeline.command("refresh", max_tokens=4500)
        assert 0 < reply["result"]["processed"] < TURNS
        assert "4500 tokens are the limit" in reply["warnings"][0]["message"]


async def test_deployments_limits_can_be_lowered_and_not_raised(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    pipeline.settings = pipeline.settings.model_copy(update={"refresh_calls": 2})
    async with pipeline.running():
        result, _ = await refreshed(pipeline, max_calls=100)
        assert (result["calls"], result["remaining"]) == (2, TURNS - 2)
        assert (await pipeline.command("refresh", max_calls=0))["error"]["field"] == "arguments.max_calls"


async def test_model_that_is_away_ends_the_job_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "MAX_OUTAGE_S", 0.0)
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        pipeline.language.become("down")
        result, warnings = await refreshed(pipeline)
        assert (result["processed"], result["remaining"], warnings) == (0, TURNS, ["unfinished"])
        pipeline.language.become("ok")
        result, warnings = await refreshed(pipeline)
        assert (result["processed"], result["remaining"], warnings) == (TURNS, 0, [])


async def test_invalid_answers_change_nothing_and_are_not_asked_for_again(tmp_path: Path) -> None:
    pipeline = with_other_prompt(await prepared(tmp_path / "before", ONE_PROFILE), tmp_path / "prompts")
    async with pipeline.running():
        before = await state(pipeline)
        pipeline.language.become("wrong")
        result, warnings = await refreshed(pipeline)
        assert (result["processed"], result["failed"], result["remaining"], warnings) == (0, TURNS, 0, [])
        assert (result["items_added"], result["items_removed"], result["items_changed"]) == (0, 0, 0)
        assert await state(pipeline) == before
        assert (await refreshed(pipeline))[0]["calls"] == 0


async def test_turns_of_an_earlier_revision_are_understood_again_once(tmp_path: Path) -> None:
    pipeline = with_other_prompt(await prepared(tmp_path / "before", ONE_PROFILE), tmp_path / "prompts", chosen={})
    template = {"op": "config", "step_id": "memorize.understand", "config": {"template": OTHER_PROMPT}}
    candidates = {"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 5}}
    async with pipeline.running():
        assert (await refreshed(pipeline, before_revision=1))[0]["total"] == 0, "there is none before the first"
        assert (await pipeline.command("edit_pipeline", edits=[template]))["status"] == "ok"
        assert (await refreshed(pipeline))[0]["processed"] == TURNS
        assert {(one.reading.prompt, one.reading.revision) for one in turns(pipeline)} == {(OTHER_PROMPT, 1)}
        await pipeline.command("edit_pipeline", edits=[candidates])
        assert (await refreshed(pipeline))[0]["total"] == 0
        result, _ = await refreshed(pipeline, before_revision=2)
        assert (result["processed"], result["items_added"], result["items_removed"]) == (TURNS, 0, 0)
        assert (await refreshed(pipeline, before_revision=2))[0]["total"] == 0
        assert {(one.revision, one.reading.revision) for one in turns(pipeline)} == {(0, 2)}


async def test_correction_and_chosen_mode_stay_and_pending_turns_are_left(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        await pipeline.command("declare_mode", name="code", embedder="tiny32")
        first, second = turns(pipeline)[:2]
        await pipeline.command("set_interaction_mode", memory_id=first.memory_id, interaction_mode="LEARNING")
        await pipeline.command("set_memory_mode", memory_id=second.memory_id, mode="code")
        pipeline.language.answers = lambda _: {
            "mode": "general",
            "interaction_mode": "TASK",
            "interaction_confidence": 1,
        }
        pipeline.language.become("down")
        await pipeline.remember("The kettle is blue.", "t-new")
        await pipeline.topics.settled()
        pipeline.language.released.clear()
        pipeline.language.become("ok")
        running = asyncio.create_task(pipeline.command("refresh"))
        await pipeline.until(lambda: len(pipeline.language.asked) > 1)
        pipeline.language.released.set()
        assert (await running)["result"]["total"] == TURNS
        await settled(pipeline)
        kept = {one.memory_id: one for one in turns(pipeline)}
        interaction = kept[first.memory_id].reading.interaction
        assert interaction is not None
        assert (interaction.mode, kept[first.memory_id].reading.is_corrected) == ("LEARNING", True)
        assert (kept[second.memory_id].mode, kept[second.memory_id].reading.model) == ("code", "default")
        shown = [
            prompt for prompt in pipeline.language.asked if "The kettle is blue." in prompt.user.rsplit("turn\n")[-1]
        ]
        assert len(shown) == 1


async def test_turn_forgotten_while_the_model_is_asked_stays_forgotten(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        pipeline.language.released.clear()
        running = asyncio.create_task(pipeline.command("refresh"))
        await pipeline.until(lambda: bool(pipeline.language.asked))
        await pipeline.ask(pipeline.names.commands, FORGET_USER)
        pipeline.language.released.set()
        result = (await running)["result"]
        assert (result["processed"], result["remaining"], result["items_added"]) == (0, 0, 0)
        await pipeline.topics.settled()
        assert list(pipeline.memories.all()) == []


async def test_without_a_model_rules_of_this_release_read_turns_again(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before")
    async with pipeline.running():
        expected = await state(pipeline)
        result, _ = await refreshed(pipeline)
        assert (result["by"], result["total"], result["processed"], result["skipped"]) == ("rules", TURNS, 0, TURNS)
    # As an earlier release would have left them: a turn without its items, and an item that rules find no more.
    kept = next(iter(items(pipeline).values()))
    [support] = kept.item.supports if kept.item else ()
    turn = pipeline.memories.get(kept_partition(pipeline, kept), support.memory_id)
    assert turn is not None
    outdated = kept.model_copy(
        update={
            "item": kept.item
            and kept.item.model_copy(update={"supports": (support.model_copy(update={"confidence": 0.1}),)})
        }
    )
    pipeline.memories.put(kept_partition(pipeline, kept), outdated)
    async with pipeline.running():
        result, warnings = await refreshed(pipeline)
        assert (result["processed"], result["changed"], warnings) == (1, [kept.memory_id], [])
        assert items(pipeline)[kept.memory_id].item == kept.item
        assert await state(pipeline) == expected
        assert (await refreshed(pipeline))[0]["processed"] == 0


async def test_steps_of_the_deployment_take_part_when_turns_are_read_again(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before")
    async with pipeline.running():
        before = await state(pipeline)
        assert before["items"]
        step = {"op": "insert_after", "at": "memorize.extract_items", "step_id": "memorize.long_items"}
        own = {"implementation": "tests.builders.own_steps.LongItemsOnly", "config": {"at_least": 10_000}}
        assert (await pipeline.command("edit_pipeline", edits=[{**step, **own}]))["status"] == "ok"
        result, _ = await refreshed(pipeline)
        assert (set(result["removed"]), items(pipeline)) == (before["items"].keys(), {})
        await pipeline.command("rollback_pipeline", revision=0)
        result, _ = await refreshed(pipeline)
        assert set(result["added"]) == before["items"].keys()
        assert await state(pipeline) == before


def kept_partition(pipeline: InMemoryPipeline, memory: Memory) -> int:
    return partition_of(memory.boundary.encode(), pipeline.partitions)


async def test_private_turn_is_not_understood_again(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path))
    async with pipeline.running():
        await settled(pipeline)
        hidden = next(one for one in pipeline.memories.all() if one.origin == "said")
        await pipeline.command("set_memory_visibility", memory_id=hidden.memory_id, private=True)
        result, _ = await refreshed(pipeline)
        assert (result["processed"], result["remaining"]) == (TURNS - 1, 0)
        assert not [prompt for prompt in pipeline.language.asked if hidden.text[:60] in prompt.user]
