"""Corrections of interaction modes as a step: answered with the memory, after its counts are safe."""

import asyncio
from typing import Any

import pytest

from schemas.internal.changes import Change
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory
from tests.harnesses.remember import NOW
from tests.harnesses.remember_steps import RememberSteps
from tests.harnesses.worker import HERE, change

pytestmark = pytest.mark.usefixtures("short_backoff")


async def classified(worker: RememberSteps) -> Memory:
    """Remember a turn that the classifier takes for TASK."""
    memory = await worker.say_embedded("violin", 0)
    reading = memory.reading.model_copy(update={"interaction": Interaction(mode="TASK", confidence=0.9)})
    worker.memories.put(HERE, memory.model_copy(update={"reading": reading}))
    return memory


def correction(memory: Memory, **fields: Any) -> Change:
    return change("correct", memory_id=memory.memory_id, interaction_mode="LEARNING", at=NOW, **fields)


def corrected(worker: RememberSteps) -> int:
    return len(worker.interactions.get(HERE).latest.corrected)


async def test_correction_is_answered_with_the_memory(worker: RememberSteps) -> None:
    memory = await classified(worker)
    answer = await worker.apply(correction(memory))
    assert answer["memory_id"] == memory.memory_id
    assert answer["interaction_mode"] == "LEARNING"
    assert corrected(worker) == 1


async def test_redelivered_correction_is_answered_again_and_counted_once(worker: RememberSteps) -> None:
    memory = await classified(worker)
    first = await worker.apply(correction(memory))
    assert await worker.apply(correction(memory)) == first
    assert corrected(worker) == 1


async def test_correction_is_not_answered_before_its_commit(worker: RememberSteps) -> None:
    memory = await classified(worker)
    writing = await worker.ctx.commit.begin(HERE)
    applying = asyncio.create_task(worker.apply(correction(memory)))
    for _ in range(50):
        await asyncio.sleep(0)
    assert worker.publisher.replies == []
    writing.finish([])
    assert (await applying)["interaction_mode"] == "LEARNING"


async def test_correction_on_a_full_disk_is_repeated_and_counted_once(worker: RememberSteps) -> None:
    memory = await classified(worker)
    worker.full.every, worker.full.writes = 2, 1
    assert (await worker.apply(correction(memory)))["interaction_mode"] == "LEARNING"
    assert corrected(worker) == 1
