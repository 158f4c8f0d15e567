"""The job `evaluate`: questions from a user's own log, by the revision in force and by another one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents.rules.evaluation.questions import RECENT_TURNS
from schemas.models.language import Prompt
from tests.fakes.language_model import ONE_PROFILE, FakeLanguageModel
from tests.stream.pipelines.test_editing import edit
from tests.stream.pipelines.test_step_settings import config
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message

THINGS = (
    "steel plates", "garden gate", "copper kettle", "island ferry", "paper lantern", "brass compass", "velvet curtain",
    "maple syrup", "granite counter", "harbour pilot", "cotton hammock", "silver whistle",
)  # fmt: skip
STRICT = config("retrieve.rank", min_score=1.0)


async def say(pipeline: InMemoryPipeline, text: str, number: int) -> None:
    # Of two turns in one millisecond neither is known before the other.
    at = 1_772_000_000_000 + number
    reply = await pipeline.ask(pipeline.names.turns, turn_message(text, f"t{number}"), timestamp_ms=at)
    assert reply["status"] == "ok"


def texts() -> list[str]:
    """Return a log that comes back to each thing once, after as many other turns as are recent."""
    first = [f"We bought the {thing} on day{number}." for number, thing in enumerate(THINGS)]
    between = [f"Today I read chapter{number} of novel{number}." for number in range(RECENT_TURNS)]
    later = [f"Where did you put those {thing} again, box{number}?" for number, thing in enumerate(THINGS)]
    return [*first, *between, *later]


async def fill(pipeline: InMemoryPipeline) -> None:
    for number, text in enumerate(texts()):
        await say(pipeline, text, number)
    await pipeline.topics.settled()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> InMemoryPipeline:
    """A stopped pipeline with the log: each test goes on with its own copy."""
    pipeline = InMemoryPipeline(tmp_path_factory.mktemp("filled") / "data")

    async def run() -> None:
        async with pipeline.running():
            await fill(pipeline)

    asyncio.run(run())
    return pipeline


@pytest.fixture
async def world(filled: InMemoryPipeline, tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with filled.copy_to(tmp_path / "data").running() as pipeline:
        yield pipeline


async def evaluated(pipeline: InMemoryPipeline, **arguments: Any) -> Json:
    return dict((await pipeline.command("evaluate", **arguments))["result"])


async def test_turns_that_come_back_are_asked(world: InMemoryPipeline) -> None:
    assert (await evaluated(world))["questions"] == len(THINGS)


async def test_words_in_common_are_found(world: InMemoryPipeline) -> None:
    assert (await evaluated(world))["modes"]["general"]["current"]["recall_at_10"] > 0.8


async def test_worse_revision_is_said_to_be_worse(world: InMemoryPipeline) -> None:
    assert (await evaluated(world, edits=[STRICT]))["verdict"] == "worse"


async def test_edit_without_effect_makes_no_difference(world: InMemoryPipeline) -> None:
    answer = await evaluated(world, edits=[config("retrieve.rank", candidates=999)])
    assert answer["difference"]["recall_at_10"] == {"mean": 0, "low": 0, "high": 0}


async def test_earlier_revision_is_better_than_a_crippled_one(world: InMemoryPipeline) -> None:
    await edit(world, STRICT)
    assert (await evaluated(world, revision=0))["verdict"] == "better"


async def test_evaluation_edits_nothing(world: InMemoryPipeline) -> None:
    await evaluated(world, edits=[STRICT])
    assert (await world.command("get_pipeline"))["result"]["revision"] == 0


async def test_questions_are_limited(world: InMemoryPipeline) -> None:
    assert (await evaluated(world, limit=3))["questions"] == 3


async def test_answer_has_an_outcome_for_each_question(world: InMemoryPipeline) -> None:
    answer = await evaluated(world, edits=[STRICT])
    assert answer["outcomes"][0]["other"] == [0, 0, answer["outcomes"][0]["other"][2]]


async def test_edits_that_break_a_rule_are_refused(world: InMemoryPipeline) -> None:
    error = (await world.command("evaluate", edits=[{"op": "remove", "step_id": "memorize.index"}]))["error"]
    assert error["message"].startswith("rule step_is_fixed: ")


async def test_unknown_revision_is_not_found(world: InMemoryPipeline) -> None:
    assert (await world.command("evaluate", revision=7))["error"]["code"] == "not_found"


async def test_a_revision_and_edits_are_refused(world: InMemoryPipeline) -> None:
    assert (await world.command("evaluate", revision=0, edits=[STRICT]))["error"]["code"] == "invalid_value"


async def test_last_evaluation_is_part_of_health(world: InMemoryPipeline) -> None:
    answer = await evaluated(world, edits=[STRICT])
    health = (await world.command("health"))["result"]
    assert health["evaluation"]["modes"] == answer["modes"]


async def test_model_is_refused_where_there_is_none(world: InMemoryPipeline) -> None:
    assert (await world.command("evaluate", by_model=True))["error"]["field"] == "arguments.by_model"


def worded(prompt: Prompt) -> Json:
    """Word every question but that about the kettle."""
    if not prompt.version.startswith("word"):
        return {}
    return {"is_needed": "kettle" not in prompt.user, "question": "Which thing did we buy?"}


@pytest.fixture
async def with_model(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    world = InMemoryPipeline(tmp_path)
    world.profiles = ONE_PROFILE
    world.settings = world.settings.model_copy(update={"llm_profiles": ONE_PROFILE})
    world.language = FakeLanguageModel(worded, ONE_PROFILE)
    async with world.running():
        await fill(world)
        yield world


async def test_model_drops_what_needs_no_memory(with_model: InMemoryPipeline) -> None:
    assert (await evaluated(with_model, by_model=True))["questions"] == len(THINGS) - 1


async def test_rules_make_questions_unless_a_profile_has_the_role(with_model: InMemoryPipeline) -> None:
    assert (await evaluated(with_model))["by"] == "rules"
