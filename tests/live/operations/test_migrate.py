"""A deployment that is copied to another prefix while it serves, by a process that is killed on its way."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from modestream_client import MemoryClient
from modestream_client.vocabulary import MemoryType

from operations.copy.kafka_source import log_places
from streams.adapters.kafka.logs import open_reader, read_to_end
from tests.worlds.live.processes import ROOT, Deployment, eventually

USERS = ("ana", "ben", "cleo")
TURNS = 25


def start_operation(deployment: Deployment, directory: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start `python -m streams ARGUMENTS` beside a deployment."""
    own = {**os.environ, **deployment.environment, "MODESTREAM_DATA_DIR": str(directory)}
    return subprocess.Popen(
        (sys.executable, "-m", "streams", *arguments), cwd=ROOT, env=own, stdout=subprocess.PIPE, text=True
    )


async def operate(deployment: Deployment, directory: Path, *arguments: str) -> tuple[int, str]:
    """Run `python -m streams ARGUMENTS`; return its exit code and what it has printed."""
    process = start_operation(deployment, directory, *arguments)
    printed, _ = await asyncio.to_thread(process.communicate, None, 120)
    return process.returncode, printed


async def live_a_life(client: MemoryClient, user: str) -> None:
    """Say and do what a migration has to keep in order."""
    await client.command("declare_mode", {"name": "journal", "embedder": "general"}, user_id=user)
    await client.command("declare_category", {"name": "cooking"}, user_id=user)
    for number in range(TURNS):
        text = f"My favourite colour of week {number} is blue, and my name is {user}."
        conversation, mode = ("secret", None) if number % 5 == 4 else ("open", "journal" if number % 3 else None)
        await client.remember(text, conversation_id=conversation, mode=mode, user_id=user)
        if number == 14:
            await client.command("forget", {"conversation_id": "secret"}, user_id=user)
            await client.command("rename_mode", {"name": "journal", "new_name": "diary"}, user_id=user)
            await client.command("declare_mode", {"name": "journal", "embedder": "general"}, user_id=user)
    await client.remember("was edited", turn_id="t", conversation_id="open", user_id=user)
    await client.remember("is the text", turn_id="t", conversation_id="open", user_id=user)


async def shown(client: MemoryClient, user: str) -> dict[str, tuple[str, str]]:
    """Return text and mode by memory id, of turns and items."""
    found = {}
    items: list[MemoryType] = ["semantic", "procedural", "document", "state_object"]
    for types in (None, items):
        async for memory in client.iter_memories(user_id=user, types=types, include_superseded=True):
            found[memory.memory_id] = (memory.text, memory.mode)
    return found


async def copied_turns(deployment: Deployment) -> int:
    async with open_reader(deployment.settings, log_places(deployment.settings)) as reader:
        return sum(end for (topic, _), end in (await reader.ends()).items() if topic == deployment.topics.turns)


async def test_killed_migration_continues_and_leaves_the_same_memories(deployment: Deployment, tmp_path: Path) -> None:
    await deployment.ready("former")
    async with deployment.client() as client:
        await asyncio.gather(*(live_a_life(client, user) for user in USERS))
    new = replace(deployment, prefix=f"new-{deployment.prefix}", partitions=3)
    await new.ready("new")
    migrate = ("migrate", "--to", new.prefix, "--partitions", "3")
    killed = start_operation(deployment, tmp_path, *migrate)

    async def has_begun() -> bool:
        return await copied_turns(new) > 10

    await eventually(has_begun, "turns are copied")
    killed.kill()
    killed.communicate()
    assert await copied_turns(new) < len(USERS) * TURNS
    code, printed = await operate(deployment, tmp_path, *migrate)
    assert code == 0, printed
    assert " 0 missing, 0 extra, 0 different" in printed
    assert await copied_turns(new) == len(USERS) * (TURNS + 2)
    async with deployment.client() as former_client, new.client() as new_client:
        for user in USERS:
            former = await shown(former_client, user)
            assert len(former) > TURNS  # turns and items
            assert await shown(new_client, user) == former
    turns = await read_to_end(new.settings, new.topics.turns, range(new.partitions))
    values = [record.value or b"" for record in turns]
    assert sum(b"week 4 is" in value for value in values) == 0
    assert sum(b"[forgotten]" in value for value in values) == len(USERS) * 3
