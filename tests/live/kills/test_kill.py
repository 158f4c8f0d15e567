"""`kill -9` of the worker while turns arrive: no accepted turn is lost or duplicated."""

import asyncio

from tests.worlds.live.flow import Flow
from tests.worlds.live.processes import Deployment

TURNS = 200
KILLS_AT = (30, 90, 150)
"""Accepted turns at the kill; others are in all stages then."""


async def test_repeated_kills_lose_and_duplicate_no_turn(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        flow = Flow(client)
        publishing = asyncio.create_task(flow.publish(range(TURNS)))
        for accepted in KILLS_AT:
            await flow.until_accepted(accepted)
            await worker.kill()
            worker = deployment.start()
        await publishing
        await flow.check()
        await flow.embedded()
        await flow.check()
