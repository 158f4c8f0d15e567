"""A flood of one user's questions is that user's own wait, from its first moment on."""

import asyncio

from tests.worlds.in_memory_pipeline import InMemoryPipeline

FLOOD = 150

OTHERS_FIRST = 60
"""Answers of the flood before that of another user, at most: those that had begun, and some of its turns."""


async def test_question_of_another_user_does_not_wait_until_a_flood_is_admitted(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("The lantern is lit.", user="alice")
    await pipeline.remember("The lantern is out.", user="bob")
    await pipeline.topics.settled()
    asked = [asyncio.create_task(pipeline.retrieve(f"lantern {number}", user="alice")) for number in range(FLOOD)]
    while len(pipeline.topics.records(pipeline.names.retrieve)) < FLOOD:
        await asyncio.sleep(0)
    assert (await pipeline.retrieve("lantern", user="bob"))["status"] == "ok"
    assert sum(task.done() for task in asked) < OTHERS_FIRST
    await asyncio.gather(*asked)
