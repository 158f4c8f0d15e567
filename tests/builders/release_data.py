"""Make the data directory of a release, which the next release must read: an archive and what was seen in it.

    unshare --uts sh -c 'hostname release && python -m tests.builders.release_data CHECKOUT MODELS OUT'

`CHECKOUT` is a worktree of the release, `MODELS` a directory for its models, `OUT` the folder of `data.tar.xz` and
`seen.json`. Its processes are killed while turns arrive. RocksDB writes the host's name into its files: hence another
one.
"""

import argparse
import asyncio
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from modestream_client import MemoryClient
from modestream_client.hits import ListedMemory
from modestream_client.vocabulary import MemoryType

from tests.worlds.live.processes import eventually
from tests.worlds.live.streams_up import running_up

Json = dict[str, Any]

USERS = ("ana", "ben", "eve")
"""The last one is forgotten."""

LATE_USER = "kay"
"""Turns of this user are acknowledged by Kafka, and hardly read, when the processes are killed."""

QUESTIONS = (
    "where do we deploy?",
    "what grows in the greenhouse?",
    "who is allergic to nuts?",
    "how is the cache cleared?",
    "when is the dentist?",
    "which food must the child avoid?",
)

LEFT_OUT = ("./logs", "./models", "./run/member.json", "./run/*.p*", "./run/*.lock", "./run/*.xml", "LOG", "LOG.old.*")
"""Files of `run` with paths, ports and ids of the machine, and `LOG`, the output of RocksDB."""

DEAD_LETTERS = "memory.dead-letters"

ITEM_TYPES = tuple(memory_type for memory_type in get_args(MemoryType) if memory_type != "episodic")
"""Lists of these have what was extracted from turns, which others leave out."""

KEPT_FIELDS = (
    "memory_id",
    "text",
    "mode",
    "version",
    "type",
    "turn_id",
    "conversation_id",
    "metadata",
    "resources",
    "superseded_by",
)
"""Fields of a memory that an upgrade does not change; `embedded_at` would, if it were embedded again."""

SAID = (
    ("The deploy target is fly.io now.", "work"),
    ("I want to ship the beta before the end of March.", "work"),
    ("We decided to use PostgreSQL for the billing service.", "work"),
    ("Clear the cache with `make purge`, then restart the proxy.", "work"),
    ("The servers are in Frankfurt.", "work"),
    ("The deploy of the servers costs 40 euros a month.", "work"),
    ("Always clear the cache of the servers before the deploy.", "work"),
    ("The build fails with error E1042 since yesterday.", "work"),
    ("My daughter Mia is allergic to nuts.", "home"),
    ("I prefer tea to coffee in the morning.", "home"),
    ("The dentist is on Thursday at nine.", "home"),
    ("My email is ana.lopez@example.org.", "home"),
    ("The spare key is under the third pot.", "home"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Friday")


async def fill(client: MemoryClient, bootstrap: str) -> None:
    """Publish turns of three users, edit, move, file and forget some, and consolidate."""
    for user in USERS:
        await client.declare_mode("journal", "general", description="garden and days", user_id=user)
        await client.declare_category("hosting", "servers, deploys and caches", user_id=user)
        await _talk(client, user)
    await until_ready(client)
    await client.consolidate(mode="journal", user_id="ana", timeout=60)
    await client.set_intention(goals=["learn to sail"], constraints=["no spending above 500"], user_id="ana")
    await client.forget(turn_id="ana-9", conversation_id="home", user_id="ana")
    await client.forget(user=True, user_id="eve")
    moved = await client.remember("The greenhouse has a new door.", turn_id="moved", user_id="ben")
    assert moved.memory_id
    await client.set_memory_mode(moved.memory_id, "journal", user_id="ben")
    await _send_garbage(bootstrap)
    await until_ready(client)


async def _talk(client: MemoryClient, user: str) -> None:
    for number, (text, talk) in enumerate(SAID):
        at = f"2026-03-{number + 1:02d}T09:00:00Z"
        await client.remember(text, turn_id=f"{user}-{number}", conversation_id=talk, occurred_at=at, user_id=user)
    for number, day in enumerate(DAYS if user == "ana" else DAYS[:1]):
        text = f"Watered the tomatoes in the greenhouse on {day}, they look healthy."
        await client.remember(text, turn_id=f"{user}-day-{number}", mode="journal", user_id=user)
    seen = {"uri": "s3://photos/1.jpg", "kind": "image", "text": "a red boat at the pier"}
    await client.remember("Look at this photo.", turn_id=f"{user}-photo", resources=[seen], user_id=user)
    await client.remember(
        "The deploy target is hetzner now.", turn_id=f"{user}-0", conversation_id="work", user_id=user
    )
    await client.remember("Wir treffen uns am Bahnhof.", turn_id=f"{user}-de", metadata={"lang": "de"}, user_id=user)


async def _send_garbage(bootstrap: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait("memory.turns", b'{"schema": "turn.v1", "scope": 7}', key=b"ben", partition=0)


async def until_ready(client: MemoryClient) -> None:
    async def ready() -> bool:
        whole = [await memories(client, user) for user in USERS]
        return all(layer["status"] == "ready" for some in whole for layer in some.values())

    await eventually(ready, "every memory is embedded")


async def memories(client: MemoryClient, user: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    async for memory in _listed(client, user):
        whole = await client.get_memory(memory.memory_id, user_id=user)
        shown = whole.model_dump(mode="json")
        kept = {name: shown.get(name) for name in KEPT_FIELDS}
        found[memory.memory_id] = {**kept, "status": whole.embedding.status, "embedded_at": whole.embedding.embedded_at}
    return found


async def _listed(client: MemoryClient, user: str) -> AsyncIterator[ListedMemory]:
    for types in (None, ITEM_TYPES):
        async for memory in client.iter_memories(user_id=user, projects="*", types=types, include_superseded=True):
            yield memory


async def seen_by(client: MemoryClient, user: str) -> Json:
    categories = await client.list_categories(include_items=True, user_id=user)
    intention = await client.get_intention(user_id=user)
    modes = await client.list_modes(user_id=user)
    return {
        "memories": await memories(client, user),
        "hits": {asked: await hits(client, asked, user) for asked in QUESTIONS},
        "categories": {category.name: [category.size, category.declared] for category in categories.categories},
        "intention": {
            kind: sorted(entry.text for entry in getattr(intention, kind))
            for kind in ("goals", "constraints", "decisions", "blocking_errors", "resolved")
        },
        "modes": sorted([mode.name, mode.embedder, mode.description] for mode in modes.modes),
    }


async def hits(client: MemoryClient, query: str, user: str) -> list[str]:
    answer = await client.retrieve(query, users=user, top_k=5)
    return [hit.memory_id for hit in answer.hits]


async def dead_letters(bootstrap: str) -> list[str]:
    async with AIOKafkaConsumer(DEAD_LETTERS, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        found: list[str] = []
        while len(found) < sum(ends.values()):
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                found += [(record.value or b"").decode() for record in records]
        return sorted(found)


async def make(checkout: Path, models: Path, data_dir: Path) -> Json:
    """Fill a data directory, and kill the processes; return what was seen in it."""
    with running_up(checkout, data_dir, models) as up:
        await up.ready()
        async with MemoryClient(up.bootstrap, timeout=60) as client:
            await fill(client, up.bootstrap)
            seen: Json = {"users": {user: await seen_by(client, user) for user in USERS}}
            seen["dead_letters"] = await dead_letters(up.bootstrap)
            seen["acknowledged"] = [await _late(client, number) for number in range(20)]
            up.kill()
    return seen


async def _late(client: MemoryClient, number: int) -> str:
    turn = f"late-{number}"
    await client.remember(f"Ticket {number} is about the printer.", turn_id=turn, user_id=LATE_USER, wait=False)
    return turn


def _archive(data_dir: Path, out: Path) -> None:
    """Pack what the next start reads: no models, no output, and no files that hold paths or ports of the machine."""
    left_out = tuple(f"--exclude={name}" for name in LEFT_OUT)
    options = ("--sparse", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0")
    subprocess.run(
        ("tar", "-C", data_dir, *options, *left_out, "--use-compress-program=xz -9e", "-cf", out, "."), check=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("checkout", "models", "out"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = Path(temporary) / "data"
        data_dir.mkdir()
        made = make(options.checkout.resolve(), options.models.resolve(), data_dir)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "seen.json").write_text(json.dumps(asyncio.run(made), indent=1, sort_keys=True) + "\n")
        _archive(data_dir, options.out / "data.tar.xz")


if __name__ == "__main__":
    main()
