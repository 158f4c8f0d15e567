"""Partitions that move between two workers that share only the broker.

The embedded vector index cannot be shared, so each worker has its own, which is not a supported deployment:
the test shows that records and lexical files move with their partition. Answers are complete as soon as a worker
serves; missing vectors are made again. A turn whose vector is only at the other worker ranks low until then, so the
test requests all turns of a user.
"""

import asyncio

from tests.worlds.live.flow import Flow
from tests.worlds.live.processes import Deployment, eventually

TURNS = 120

ALL = 100
"""Requested hits: more than any user's turns."""


async def test_answers_stay_complete_during_rebalances(deployment: Deployment) -> None:
    deployment.partitions = 4
    first = await deployment.ready("first")
    async with deployment.client() as client:
        flow = Flow(client, top_k=ALL)
        publishing = asyncio.create_task(flow.publish(range(TURNS)))
        await flow.until_accepted(TURNS // 4)
        second = deployment.start("second")
        await deployment.served_by(first, second)
        await publishing
        await flow.check()
        more = asyncio.create_task(flow.publish(range(TURNS, 2 * TURNS)))
        await flow.until_accepted(TURNS + TURNS // 4)
        await first.kill()
        await deployment.served_by(second)
        await more
        await flow.check()
        await flow.embedded()


async def test_worker_that_leaves_in_good_order_loses_nothing(deployment: Deployment) -> None:
    first, second = deployment.start("first"), deployment.start("second")
    await deployment.served_by(first, second)
    async with deployment.client() as client:
        flow = Flow(client, top_k=ALL)
        publishing = asyncio.create_task(flow.publish(range(TURNS)))
        await flow.until_accepted(TURNS // 4)
        assert await second.terminate(within_s=20) == 0
        await deployment.served_by(first)
        await publishing
        await flow.check()


async def test_worker_joins_while_the_vector_store_is_away(deployment: Deployment) -> None:
    deployment.more |= {"QDRANT_URL": "http://127.0.0.1:1", "QDRANT_GRPC_PORT": "1"}
    first = await deployment.ready("first")
    async with deployment.client() as client:
        await client.remember("The lamp is in the hall.")
        second = deployment.start("second")

        async def shared() -> bool:
            # It ends when its turn of the rebalance has waited for long enough; its supervisor would start it again.
            nonlocal first
            if not first.is_running:
                first = deployment.start("first")
            parts = [await worker.served_partitions() for worker in (first, second) if worker.is_running]
            return all(parts) and sum(map(len, parts)) == deployment.partitions == len(set().union(*parts))

        await eventually(shared, "both workers serve all partitions")
        assert [hit.text for hit in (await client.retrieve("where is the lamp?")).hits] == ["The lamp is in the hall."]
