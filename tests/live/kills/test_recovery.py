"""An empty disk: a worker restores all state from Kafka."""

import shutil

from tests.worlds.live.flow import Flow, hits_of
from tests.worlds.live.processes import Deployment
from tests.worlds.live.vectors_on_disk import vectors_on_disk

TURNS = 40


async def test_worker_restores_its_state_on_an_empty_disk(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        flow = Flow(client)
        await flow.publish(range(TURNS))
        edited = await client.remember("We deploy to heroku.", turn_id="edited")
        await client.remember("We deploy to fly.io.", turn_id="edited")
        await flow.embedded()
        await worker.kill()
        shutil.rmtree(worker.data_dir)
        await deployment.ready()

        record = await client.command("get_memory", {"memory_id": edited.memory_id})
        assert (record["text"], record["version"], len(record["versions"])) == ("We deploy to fly.io.", 2, 2)
        again = await client.remember("We deploy to fly.io.", turn_id="edited")
        assert (again.duplicate, again.version, again.memory_id) == (True, 2, edited.memory_id)
        for turn, before in flow.accepted.items():
            assert [hit.memory_id for hit in await hits_of(client, turn)] == [before.memory_id]
        await flow.embedded()
        answer = await client.retrieve("where do we deploy?")
        assert (answer.strategy, answer.warnings, answer.hits[0].text) == ("hybrid", (), "We deploy to fly.io.")


async def test_worker_restores_every_vector_after_a_partial_disk_loss(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        flow = Flow(client)
        for number, part in enumerate(["tables", "words", "vectors"]):
            # Killed with its reports of vectors unread or uncommitted.
            await flow.publish(range(number * TURNS, (number + 1) * TURNS))
            await worker.kill()
            shutil.rmtree(worker.data_dir / part)
            worker = await deployment.ready()
        await flow.check()
        await flow.embedded()
        await deployment.until_processed()
        await worker.kill()
    ids = {before.memory_id for before in flow.accepted.values() if before.memory_id}
    assert len(ids) == 3 * TURNS
    stored, points = await vectors_on_disk(worker.data_dir, ids, deployment.partitions)
    assert ({one.memory_id for one in stored}, points) == (ids, len(ids))
