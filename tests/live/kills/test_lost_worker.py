"""A worker that is lost with its disk, where another one keeps copies of its partitions."""

import asyncio
import shutil

from tests.worlds.live.flow import Flow
from tests.worlds.live.processes import Deployment, Worker, eventually

TURNS = 80

ALL = 100
"""Requested hits: more than any user's turns."""


async def test_copies_answer_for_a_worker_that_is_lost_with_its_disk(deployment: Deployment) -> None:
    deployment.partitions = 4
    deployment.more["STANDBY_COPIES"] = "1"
    first = await deployment.ready("first")
    second = deployment.start("second")
    # It keeps copies of all partitions, and then takes over two.
    await deployment.served_by(first, second)
    async with deployment.client() as client:
        flow = Flow(client, top_k=ALL)
        await flow.publish(range(TURNS))
        await eventually(lambda: have_complete_copies(first, second), "copies are complete")
        publishing = asyncio.create_task(flow.publish(range(TURNS, 2 * TURNS)))
        await flow.until_accepted(TURNS + TURNS // 4)
        await first.kill()
        shutil.rmtree(first.data_dir)
        await deployment.served_by(second)
        await publishing
        await flow.check()
    # What it has got as copies was not made again from the table.
    assert "rebuilding the lexical index" not in second.log.read_text()


async def have_complete_copies(*workers: Worker) -> bool:
    """True if each worker keeps copies of the others' partitions, and they lack nothing."""
    pages = [await asyncio.to_thread(worker.health) for worker in workers]
    kept = [page.get("copies", {}) for page in pages]
    return sum(map(len, kept)) == 4 and all(set(offsets.values()) == {0} for offsets in kept)
