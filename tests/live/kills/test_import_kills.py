"""`kill -9` of `modestream import` in the middle, and the import again: each message of an export is one memory."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.builders.exports import chatgpt, node
from tests.worlds.live.processes import ROOT, Deployment, eventually

MESSAGES, CONVERSATION = 400, 20


def text_of(number: int) -> str:
    return f"Message {number}: the boat needs new paint before spring, and the slip in Faro is booked."


def write_export(path: Path) -> None:
    talks = []
    for first in range(0, MESSAGES, CONVERSATION):
        nodes = [
            node(
                f"n{number}",
                f"n{number - 1}" if number > first else "root",
                "assistant" if number % 2 else "user",
                text_of(number),
                create_time=1772700000.0 + 37 * number,
            )
            for number in range(first, first + CONVERSATION)
        ]
        talks += chatgpt(*nodes, conversation_id=f"talk-{first}")
    path.write_text(json.dumps(talks))


def start_import(deployment: Deployment, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (sys.executable, "-m", "streams", "import", "chatgpt", str(path), "--user", "u1"),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | deployment.environment | {"MODESTREAM_DATA_DIR": str(deployment.directory / "importer")},
    )


async def published(deployment: Deployment) -> int:
    """Return how many turns are in the log."""
    turns = [TopicPartition(deployment.topics.turns, number) for number in range(deployment.partitions)]
    async with AIOKafkaConsumer(bootstrap_servers=deployment.bootstrap) as consumer:
        return sum((await consumer.end_offsets(turns)).values())


async def test_killed_import_goes_on_and_stores_each_message_once(deployment: Deployment, tmp_path: Path) -> None:
    await deployment.ready()
    path = tmp_path / "conversations.json"
    write_export(path)
    importing = start_import(deployment, path)

    async def is_in_the_middle() -> bool:
        return await published(deployment) >= MESSAGES // 4

    await eventually(is_in_the_middle, "a quarter of the messages is published")
    importing.send_signal(signal.SIGKILL)
    await asyncio.to_thread(importing.communicate)
    assert await published(deployment) < MESSAGES
    again = start_import(deployment, path)
    await asyncio.to_thread(again.communicate, timeout=120)
    assert again.returncode == 0
    async with deployment.client() as memory:
        texts = Counter([each.text async for each in memory.iter_memories(types=["episodic"])])
    assert texts == Counter(text_of(number) for number in range(MESSAGES))
