"""Invalid records in a stream of turns: their neighbours are unaffected, and each is a dead letter."""

import os
from collections import Counter

from aiokafka import AIOKafkaProducer

from tests.live.operations.test_shutdown import written
from tests.worlds.live.flow import Flow
from tests.worlds.live.kcat import needs_kcat, produce
from tests.worlds.live.processes import Deployment, eventually

TURNS = 160
EVERY = 20
"""One of this many records is invalid, between valid ones in the same batches."""


async def dead_letters(deployment: Deployment) -> Counter[bytes]:
    return Counter([value async for value in written(deployment, deployment.topics.dead_letters)])


async def test_invalid_records_are_dead_letters_and_all_turns_are_found(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    before = await dead_letters(deployment)
    garbage = [os.urandom(64) for _ in range(TURNS // EVERY)]
    async with deployment.client() as client, AIOKafkaProducer(bootstrap_servers=deployment.bootstrap) as producer:
        flow = Flow(client)
        for number, value in enumerate(garbage):
            await producer.send(deployment.topics.turns, value, partition=number % deployment.partitions)
            await flow.publish(range(number * EVERY, (number + 1) * EVERY))
        await flow.check()

        async def all_there() -> bool:
            return await dead_letters(deployment) == before + Counter(garbage)

        await eventually(all_there, "every invalid record is one dead letter")


@needs_kcat
async def test_records_of_other_clients_do_not_block_the_topic(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    worker = await deployment.serving()
    before = await dead_letters(deployment)
    odd = [("-H", b"na\xffme=v"), ("-H", b"reply_to=\xff", "-H", b"\xfe"), ("-Z", "-K", ":")]
    for topic in (deployment.topics.turns, deployment.topics.retrieve, deployment.topics.commands):
        for arguments in odd:
            # -Z sends empty keys and values as null.
            await produce(deployment, topic, b":" if "-Z" in arguments else b"no json", "-p", "0", *arguments)
    async with deployment.client() as client:
        for partition in range(deployment.partitions):
            await client.remember(f"The box {partition} is in the hall.", user_id=f"user-{partition}")

        async def all_there() -> bool:
            return await dead_letters(deployment) == before + Counter([b""] * 3 + [b"no json"] * 6)

        await eventually(all_there, "every invalid record is one dead letter")
    assert worker.is_running
