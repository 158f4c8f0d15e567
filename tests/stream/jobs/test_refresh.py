"""Turns that are understood again: those that are due, within a budget, once, and with what has changed."""

import asyncio
from pathlib import Path

import pytest

from streams.flow.steps import refresh
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_requests import command_message
from tests.worlds.refreshed import (
    FORGET_USER,
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
        assert first["by"] == "default"
        assert first["total"] == TURNS
        assert first["processed"] == 3
        assert first["remaining"] == TURNS - 3
        assert first["calls"] == 3
        assert first["tokens"] == 6
        assert warnings == ["unfinished"]
        second, warnings = await refreshed(pipeline)
        assert second["processed"] == TURNS - 3
        assert second["remaining"] == 0
        assert warnings == []
        third, _ = await refreshed(pipeline)
        assert third["total"] == 0
        assert third["items_added"] == 0
        assert third["calls"] == 0
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
        assert result["processed"] == TURNS
        assert result["calls"] == TURNS
        assert again["total"] == 0
        assert set(result["added"]) == items(pipeline).keys() - before.keys()
        assert set(result["removed"]) == before.keys() - items(pipeline).keys()
        assert {turn.reading.prompt for turn in turns(pipeline)} == {OTHER_PROMPT}
        await state(pipeline)


async def test_budget_of_tokens_leaves_the_rest_for_the_next_call(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        result, warnings = await refreshed(pipeline, max_tokens=10)
        assert result["processed"] == 0
        assert result["remaining"] == TURNS
        assert warnings == ["unfinished"]
        assert pipeline.language.asked == []
        reply = await pipeline.command("refresh", max_tokens=4500)
        assert 0 < reply["result"]["processed"] < TURNS
        assert "4500 tokens are the limit" in reply["warnings"][0]["message"]


async def test_deployments_limits_can_be_lowered_and_not_raised(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path / "before"))
    pipeline.settings = pipeline.settings.model_copy(update={"refresh_calls": 2})
    async with pipeline.running():
        result, _ = await refreshed(pipeline, max_calls=100)
        assert result["calls"] == 2
        assert result["remaining"] == TURNS - 2
        assert (await pipeline.command("refresh", max_calls=0))["error"]["field"] == "arguments.max_calls"


async def test_model_that_is_away_ends_the_job_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "MAX_OUTAGE_S", 0.0)
    pipeline = with_profile(await prepared(tmp_path / "before"))
    async with pipeline.running():
        pipeline.language.become("down")
        result, warnings = await refreshed(pipeline)
        assert result["processed"] == 0
        assert result["remaining"] == TURNS
        assert warnings == ["unfinished"]
        pipeline.language.become("ok")
        result, warnings = await refreshed(pipeline)
        assert result["processed"] == TURNS
        assert result["remaining"] == 0
        assert warnings == []


async def test_invalid_answers_change_nothing_and_are_not_asked_for_again(tmp_path: Path) -> None:
    pipeline = with_other_prompt(await prepared(tmp_path / "before", ONE_PROFILE), tmp_path / "prompts")
    async with pipeline.running():
        before = await state(pipeline)
        pipeline.language.become("wrong")
        result, warnings = await refreshed(pipeline)
        assert result["processed"] == 0
        assert result["failed"] == TURNS
        assert result["remaining"] == 0
        assert warnings == []
        assert result["items_added"] == 0
        assert result["items_removed"] == 0
        assert result["items_changed"] == 0
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
        assert {(turn.reading.prompt, turn.reading.revision) for turn in turns(pipeline)} == {(OTHER_PROMPT, 1)}
        await pipeline.command("edit_pipeline", edits=[candidates])
        assert (await refreshed(pipeline))[0]["total"] == 0
        result, _ = await refreshed(pipeline, before_revision=2)
        assert result["processed"] == TURNS
        assert result["items_added"] == 0
        assert result["items_removed"] == 0
        assert (await refreshed(pipeline, before_revision=2))[0]["total"] == 0
        assert {(turn.revision, turn.reading.revision) for turn in turns(pipeline)} == {(0, 2)}


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
        kept = {turn.memory_id: turn for turn in turns(pipeline)}
        interaction = kept[first.memory_id].reading.interaction
        assert interaction is not None
        assert interaction.mode == "LEARNING"
        assert kept[first.memory_id].reading.is_corrected
        assert kept[second.memory_id].mode == "code"
        assert kept[second.memory_id].reading.model == "default"
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
        assert result["processed"] == 0
        assert result["remaining"] == 0
        assert result["items_added"] == 0
        await pipeline.topics.settled()
        assert list(pipeline.memories.all()) == []


async def test_without_a_model_rules_of_this_release_read_turns_again(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before")
    async with pipeline.running():
        expected = await state(pipeline)
        result, _ = await refreshed(pipeline)
        assert result["by"] == "rules"
        assert result["total"] == TURNS
        assert result["processed"] == 0
        assert result["skipped"] == TURNS
    # As other rules would have left them: a turn without its items, and an item that rules find no more.
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
        assert result["processed"] == 1
        assert result["changed"] == [kept.memory_id]
        assert warnings == []
        assert items(pipeline)[kept.memory_id].item == kept.item
        assert await state(pipeline) == expected
        assert (await refreshed(pipeline))[0]["processed"] == 0


async def test_steps_of_the_deployment_take_part_when_turns_are_read_again(tmp_path: Path) -> None:
    pipeline = await prepared(tmp_path / "before")
    async with pipeline.running():
        before = await state(pipeline)
        assert before["items"]
        step = {"op": "insert_after", "at": "memorize.extract_items", "step_id": "memorize.long_items"}
        own = {"implementation": "tests.builders.custom_steps.LongItemsOnly", "config": {"at_least": 10_000}}
        assert (await pipeline.command("edit_pipeline", edits=[{**step, **own}]))["status"] == "ok"
        result, _ = await refreshed(pipeline)
        assert set(result["removed"]) == before["items"].keys()
        assert items(pipeline) == {}
        await pipeline.command("rollback_pipeline", revision=0)
        result, _ = await refreshed(pipeline)
        assert set(result["added"]) == before["items"].keys()
        assert await state(pipeline) == before


async def test_private_turn_is_not_understood_again(tmp_path: Path) -> None:
    pipeline = with_profile(await prepared(tmp_path))
    async with pipeline.running():
        await settled(pipeline)
        hidden = next(memory for memory in pipeline.memories.all() if memory.origin == "said")
        await pipeline.command("set_memory_visibility", memory_id=hidden.memory_id, private=True)
        result, _ = await refreshed(pipeline)
        assert result["processed"] == TURNS - 1
        assert result["remaining"] == 0
        assert not [prompt for prompt in pipeline.language.asked if hidden.text[:60] in prompt.user]
