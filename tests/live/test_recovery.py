"""A new disk: everything that a worker keeps is made again from Kafka (CONTRACT §8)."""

import shutil

from tests.live.flow import Flow, found_for
from tests.live.processes import Deployment

TURNS = 40


async def test_a_worker_with_an_empty_data_directory_is_what_it_was(deployment: Deployment) -> None:
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

        kept = await client.command("get_memory", {"memory_id": edited.memory_id})
        assert (kept["text"], kept["version"], len(kept["versions"])) == ("We deploy to fly.io.", 2, 2)
        again = await client.remember("We deploy to fly.io.", turn_id="edited")
        assert (again.duplicate, again.version, again.memory_id) == (True, 2, edited.memory_id)
        for told, before in flow.accepted.items():
            assert [hit.memory_id for hit in await found_for(client, told)] == [before.memory_id]
        await flow.embedded()
        answer = await client.retrieve("where do we deploy?")
        assert (answer.strategy, answer.warnings, answer.hits[0].text) == ("hybrid", (), "We deploy to fly.io.")
