"""Garbage in a stream of turns: it costs its neighbours nothing, and none of it disappears (CONTRACT §7)."""

import os

from aiokafka import AIOKafkaProducer

from tests.live.flow import Flow
from tests.live.processes import Deployment, eventually
from tests.live.test_shutdown import written

TURNS = 300
EVERY = 20
"""One record in so many is garbage, between good ones in the same batches."""


async def test_garbage_among_turns_becomes_dead_letters_and_every_turn_is_found(deployment: Deployment) -> None:
    await deployment.ready()
    garbage = [os.urandom(64) for _ in range(TURNS // EVERY)]
    async with deployment.client() as client, AIOKafkaProducer(bootstrap_servers=deployment.bootstrap) as producer:
        flow = Flow(client)
        for number, value in enumerate(garbage):
            await producer.send(deployment.topics.turns, value, partition=number % deployment.partitions)
            await flow.publish(range(number * EVERY, (number + 1) * EVERY))
        await flow.check()

        async def all_there() -> bool:
            return sorted([value async for value in written(deployment, deployment.topics.dead_letters)]) == sorted(
                garbage
            )

        await eventually(all_there, "every bad record is a dead letter, once")
