"""Turns of a sample conversation in a pipeline, understood once, to be understood again by the job `refresh`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.rules.text.passages import split_sentences
from schemas.models.language import Profiles, Prompt
from schemas.state.memories import Memory
from streams.bootstrap.prompts import PROJECT_PROMPTS
from streams.wire.partitioning import partition_of
from tests.fakes.language_model import ONE_PROFILE, FakeLanguageModel
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message

SAMPLE = Path(__file__).parents[2] / "training" / "ranking" / "conversations" / "conv-code.json"
SHOWN_TURN = re.compile(r"<<< (\w+) turn\n(.*?)\n>>> \1", re.DOTALL)
OTHER_PROMPT = "understand-other"
OTHER_CHOSEN = {"understand": OTHER_PROMPT}
TURNS = 6
FORGET_USER = {**command_message("forget"), "arguments": {"user": True}}


def sample_turns(turns: int = TURNS) -> list[Json]:
    said = json.loads(SAMPLE.read_text())["conversation"]["session_1"][:turns]
    return [
        turn_message(turn["text"], turn["dia_id"], role="assistant" if turn["speaker"] == "Assistant" else "user")
        for turn in said
    ]


def known_answer(prompt: Prompt) -> Json:
    """Find facts in the first sentences of a turn, in others with the other prompt, and a goal with the first alone."""
    found = SHOWN_TURN.search(prompt.user)
    if prompt.version.startswith("adjust"):
        return {}
    assert found is not None
    sentences = [sentence.strip() for sentence in split_sentences(found[2]) if len(sentence.split()) > 3]
    is_other = prompt.version == OTHER_PROMPT
    items = [
        {"kind": "fact", "text": f"Noted: {sentence}", "quote": sentence}
        for sentence in (sentences[1:3] if is_other else sentences[:2])
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
        return all(memory.embedding.status == "ready" and memory.reading.status != "pending" for memory in memories)

    await pipeline.topics.settled()
    await pipeline.until(done)
    await pipeline.topics.settled()


def items(pipeline: InMemoryPipeline) -> dict[str, Memory]:
    return {memory.memory_id: memory for memory in pipeline.memories.all() if memory.origin == "extracted"}


def turns(pipeline: InMemoryPipeline) -> list[Memory]:
    return [memory for memory in pipeline.memories.all() if memory.origin == "said"]


async def state(pipeline: InMemoryPipeline) -> Json:
    """Return what was understood: turns, items, their vectors and words, and the intention."""
    space = pipeline.space("general", "general")
    ids = [memory.memory_id for memory in pipeline.memories.all()]
    counted = [await pipeline.index.count(space, partition) for partition in range(pipeline.partitions)]
    assert (await pipeline.index.hashes(space, ids)).keys() == {*ids}
    assert sum(counted) == len(ids), "no vector is left of what is gone"
    shown = (await pipeline.command("get_intention"))["result"]
    return {
        "turns": {
            turn.memory_id: (turn.reading.model, turn.reading.topic, turn.entities, turn.items)
            for turn in turns(pipeline)
        },
        "items": {key: (item.text, item.evidence, item.superseded_by) for key, item in items(pipeline).items()},
        "goals": sorted(goal["text"] for goal in shown["goals"]),
    }


async def refreshed(pipeline: InMemoryPipeline, **arguments: Any) -> tuple[Json, list[str]]:
    reply = await pipeline.command("refresh", **arguments)
    assert reply["status"] == "ok", reply
    await settled(pipeline)
    return dict(reply["result"]), [warning["code"] for warning in reply["warnings"]]


def kept_partition(pipeline: InMemoryPipeline, memory: Memory) -> int:
    return partition_of(memory.boundary.encode(), pipeline.partitions)
