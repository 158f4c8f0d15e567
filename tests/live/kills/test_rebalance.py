"""Partitions that move between two workers, which share nothing but the broker.

The embedded vector index belongs to one worker and cannot be shared, so each has its own here, as a deployment
without a Qdrant server must not be run: what is shown is that records and words move with their partition. Answers are
complete from the moment on that a worker serves; vectors are made again where they are missing. A turn whose vector
lies with the other worker alone ranks low until then, so all that a user said is looked at.
"""

import asyncio

from tests.worlds.live.flow import Flow
from tests.worlds.live.processes import Deployment

TURNS = 240

ALL = 100
"""Hits of a question: more than any user says."""


async def test_answers_are_complete_while_a_worker_joins_and_after_one_is_killed(deployment: Deployment) -> None:
    first = await deployment.ready("first")
    async with deployment.client() as client:
        flow = Flow(client, top_k=ALL)
        publishing = asyncio.create_task(flow.publish(range(TURNS)))
        await flow.reached(TURNS // 4)
        second = deployment.start("second")
        await deployment.served_by(first, second)
        await publishing
        await flow.check()
        more = asyncio.create_task(flow.publish(range(TURNS, 2 * TURNS)))
        await flow.reached(TURNS + TURNS // 4)
        await first.kill()
        await deployment.served_by(second)
        await more
        await flow.check()
        await flow.embedded()


async def test_a_worker_that_leaves_in_good_order_loses_nothing(deployment: Deployment) -> None:
    first, second = deployment.start("first"), deployment.start("second")
    await deployment.served_by(first, second)
    async with deployment.client() as client:
        flow = Flow(client, top_k=ALL)
        publishing = asyncio.create_task(flow.publish(range(TURNS)))
        await flow.reached(TURNS // 4)
        assert await second.terminate(within_s=20) == 0
        await deployment.served_by(first)
        await publishing
        await flow.check()
