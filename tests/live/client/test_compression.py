"""Compressed batches: they are read, and too large records are rejected."""

import json
from functools import partial

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from streams.topics import MAX_INPUT_BYTES
from tests.worlds.live.kcat import needs_kcat, produce
from tests.worlds.live.processes import Deployment, eventually

TURNS = 20

CODECS = ("gzip", "snappy", "lz4", "zstd")


def turn(number: int, user: str = "ana") -> bytes:
    message = {"schema": "turn.v1", "scope": {"user_id": user}, "conversation_id": "c1", "role": "user"}
    return json.dumps(message | {"turn_id": f"t-{number}", "content": f"The box {number} is in the hall."}).encode()


@needs_kcat
async def test_every_compression_is_read(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    for codec in CODECS:
        lines = b"".join(turn(number, codec) + b"\n" for number in range(TURNS))
        await produce(deployment, deployment.topics.turns, lines, "-z", codec, "-X", "linger.ms=200")
    async with deployment.client() as client:

        async def all_found(user: str) -> bool:
            return len((await client.retrieve("which box?", users=user, top_k=100)).hits) == TURNS

        for codec in CODECS:
            await eventually(partial(all_found, codec), f"turns packed with {codec} are found")


async def test_batch_too_large_when_decompressed_is_rejected(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    limits = {"max_batch_size": 4 * MAX_INPUT_BYTES, "max_request_size": 4 * MAX_INPUT_BYTES}
    giant = turn(0)[:-1] + b', "more": "' + b"a" * 2 * MAX_INPUT_BYTES + b'"}'
    async with AIOKafkaProducer(bootstrap_servers=deployment.bootstrap, compression_type="gzip", **limits) as producer:
        with pytest.raises(MessageSizeTooLargeError):
            await producer.send_and_wait(deployment.topics.turns, giant, partition=0)
