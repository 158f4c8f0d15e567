"""`python -m bench.model_change`: a mode's model is changed under questions; prints recall at every moment.

One user's memories are our English conversations with their questions, and synthetic turns up to the wanted number:
first by a model that is not there, so by words alone, then by a first model. While the mode gets a second one, the
questions are asked round after round, turns arrive, and the worker is killed once. Then the mode is rolled back,
changed again, and the former vectors are dropped. Another user has the same turns by the second model from the start.
Exit code 1 if recall was below that of words alone in any round, if it differs at the end from that of the second
model, or if a roll-back embeds what it need not.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from modestream_client import MemoryClient, MemoryClientError

from bench.harness.labelled_load import Load
from bench.harness.system import System, running
from schemas.messages.turns import Turn
from streams.settings import Settings
from streams.wire.partitioning import partition_of

BEFORE, AFTER, MISSING = "all-MiniLM-L6-v2", "multilingual-small", "research"
"""The embedders: the one before, the new one, and one whose model is nowhere on this machine."""

MODE, AT_ONCE, TOP_K = "notes", 96, 10
POLL_INTERVAL_S = 1.0
TOLERANCE = 0.005
"""Difference of recall that is none: a question of two hundred."""


ResultT = TypeVar("ResultT")


@dataclass
class Round:
    """One round of all questions: recall among the first ten, the state of the change, and how long answers took."""

    at_s: float
    recall: float
    made: int
    serves: str
    strategies: set[str]
    slowest_s: float
    note: str = ""


@dataclass
class Bench:
    """The three users of one system."""

    system: System
    client: MemoryClient
    load: Load
    began: float = field(default_factory=time.monotonic)
    rounds: list[Round] = field(default_factory=list)

    async def fill(self, user: str, embedder: str) -> None:
        """Declare the mode and store the turns."""
        await self.command(user, "declare_mode", name=MODE, embedder=embedder)
        turns = iter(self.load.turns)

        async def store() -> None:
            for turn in turns:
                await self.remember(user, turn)

        await asyncio.gather(*(store() for _ in range(AT_ONCE)))

    async def remember(self, user: str, turn: Turn) -> None:
        """Store one turn."""
        await self.client.remember(
            turn.content,
            turn_id=turn.turn_id,
            conversation_id=turn.conversation_id,
            role=turn.role,
            speaker=turn.speaker,
            occurred_at=turn.occurred_at,
            mode=MODE,
            user_id=user,
        )

    async def command(self, user: str, name: str, /, **arguments: object) -> Any:
        """Send a command."""
        return await self.client.command(name, arguments, user_id=user, timeout=600)

    async def health(self, user: str) -> dict[str, Any]:
        """Return the state of the mode."""
        health: dict[str, Any] = (await self.command(user, "health"))["modes"][MODE]
        return health

    async def until_ready(self, user: str) -> None:
        """Wait until no vector is missing."""
        while (state := await self.health(user))["pending"] + state["stale"]:
            progress(f"{user}: {state['ready']} of {state['eligible']} vectors")
            await asyncio.sleep(5 * POLL_INTERVAL_S)

    async def ask_all(self, user: str) -> Round:
        """Ask every question once."""
        found, strategies, slowest = [], set(), 0.0
        for question in self.load.questions:
            began = time.monotonic()
            answer = await self.client.retrieve(
                question.text, users=user, mode=MODE, top_k=TOP_K, read_after=None, timeout=60
            )
            slowest = max(slowest, time.monotonic() - began)
            strategies.add(answer.strategy)
            ids = {hit.turn_id for hit in answer.hits}
            found.append(len(ids.intersection(question.evidence)) / len(question.evidence))
        recall = sum(found) / len(found)
        return Round(time.monotonic() - self.began, recall, 0, "", strategies, slowest)

    async def sample(self, user: str, note: str = "") -> Round:
        """Ask a round, and add it with the state after it."""
        one = await self.ask_all(user)
        state = await self.health(user)
        former = state["former"] or {}
        one.made = state["ready"]
        one.serves = "former" if former.get("serves") else "declared"
        one.note = note
        self.rounds.append(one)
        progress(row(one))
        return one

    async def requested(self, user: str) -> int:
        """Return how many vectors were requested so far in the user's partition: the end of the indexer's topic."""
        settings = Settings()
        place = TopicPartition(f"{settings.topic_prefix}remembered", partition_of(user.encode(), settings.partitions))
        consumer = AIOKafkaConsumer(bootstrap_servers=self.system.bootstrap)
        await consumer.start()
        try:
            return int((await consumer.end_offsets([place]))[place])
        finally:
            await consumer.stop()


async def change(bench: Bench, user: str, later: Iterator[Turn]) -> None:
    """Change the model under questions, with a turn in each round, and kill the worker when half is made."""
    bench.began = time.monotonic()
    total = (await bench.health(user))["eligible"]
    await bench.command(user, "declare_mode", name=MODE, embedder=AFTER)
    is_killed = False
    while True:
        for turn in islice(later, 1):
            await bench.remember(user, turn)
        one = await sampled(bench, user)
        if not is_killed and one.made > total / 2:
            is_killed = True
            os.kill(bench.system.pid("worker"), signal.SIGKILL)
            progress("the worker is killed")
            await again(lambda: bench.health(user))
            await sampled(bench, user, "first round after the kill")
        if one.serves == "declared":
            return


async def sampled(bench: Bench, user: str, note: str = "") -> Round:
    """Ask a round, again if the worker went away in it."""
    return await again(lambda: bench.sample(user, note))


async def again(call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Repeat a call that no worker answers."""
    while True:
        try:
            return await call()
        except MemoryClientError as problem:
            progress(f"no answer: {problem}")
            await asyncio.sleep(POLL_INTERVAL_S)


async def reference(bench: Bench) -> Round:
    """Return a round of a user with the second model from the start."""
    await bench.fill("new", AFTER)
    await bench.until_ready("new")
    return await bench.ask_all("new")


async def run(directory: Path, models: Path | None, load: Load, *, compares: bool) -> int:
    """Run everything and print; return the exit code."""
    settings = {"MODESTREAM_MODEL_DIR": str(models)} if models else {}
    faults: list[str] = []
    async with running(directory, settings) as system, MemoryClient(system.bootstrap, timeout=120) as client:
        bench = Bench(system, client, load)
        await bench.fill("ana", MISSING)
        words = await bench.ask_all("ana")
        assert words.strategies == {"lexical"}, words
        await bench.command("ana", "declare_mode", name=MODE, embedder=BEFORE)
        await bench.until_ready("ana")
        old = await bench.ask_all("ana")
        new = await reference(bench) if compares else None
        print(f"{len(load.turns)} turns, {len(load.questions)} questions; recall@{TOP_K}:")
        print(f"words alone {words.recall:.3f}, {BEFORE} {old.recall:.3f}, {AFTER} {new.recall if new else None}\n")
        disk = size_of(directory / "vectors")
        later = (
            one.model_copy(update={"turn_id": f"later-{n}", "content": f"A later remark, number {n}."})
            for n, one in enumerate(load.turns)
        )
        requests = await bench.requested("ana")
        await change(bench, "ana", later)
        made = await bench.requested("ana") - requests
        took = time.monotonic() - bench.began
        last = await bench.sample("ana", "after the switch")
        print(*table(bench.rounds), sep="\n")
        print(
            f"\nthe change: {made} vectors requested in {took:.0f} s; disk of the vectors of all users before"
            f" {disk / 1e6:.0f} MB, with both {size_of(directory / 'vectors') / 1e6:.0f} MB"
        )
        worst = min(bench.rounds, key=lambda one: one.recall)
        if worst.recall < words.recall - TOLERANCE:
            faults.append(f"recall was {worst.recall:.3f}, of words alone {words.recall:.3f}")
        if new is not None and abs(last.recall - new.recall) > TOLERANCE:
            faults.append(f"recall is {last.recall:.3f} at the end, of the new model {new.recall:.3f}")
        for name, embedder, expected in (("roll-back", BEFORE, old), ("change again", AFTER, last)):
            faults += await switch(bench, name, embedder, expected)
        before = await bench.requested("ana")
        await bench.command("ana", "declare_mode", name=MODE, embedder=AFTER, keep_former=False)
        dropped = await bench.sample("ana", "former vectors dropped")
        print(
            f"dropped: {await bench.requested('ana') - before} removals, recall {dropped.recall:.3f}, former:"
            f" {(await bench.health('ana'))['former']}"
        )
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


async def switch(bench: Bench, name: str, embedder: str, expected: Round) -> list[str]:
    """Declare an embedder whose vectors are kept; return what was wrong."""
    before = await bench.requested("ana")
    missing = (await bench.health("ana"))["eligible"] - ((await bench.health("ana"))["former"] or {}).get("vectors", 0)
    began = time.monotonic()
    await bench.command("ana", "declare_mode", name=MODE, embedder=embedder)
    answered_s = time.monotonic() - began
    first = await bench.sample("ana", f"{name}: first round")
    await bench.until_ready("ana")
    settled_s = time.monotonic() - began
    last = await bench.sample("ana", f"{name}: all reported")
    requested = await bench.requested("ana") - before
    print(
        f"{name}: the command took {answered_s:.1f} s, all was reported after {settled_s:.1f} s; {requested} vectors"
        f" requested ({missing} memories had none of {embedder}); recall {first.recall:.3f}, then {last.recall:.3f}"
    )
    faults = [f"{name}: {requested} vectors were requested, {missing} are missing"] if requested > missing else []
    if abs(last.recall - expected.recall) > TOLERANCE:
        faults.append(f"{name}: recall is {last.recall:.3f} instead of {expected.recall:.3f}")
    return faults


def table(rounds: Sequence[Round]) -> Iterator[str]:
    """Yield the rows of the rounds in Markdown."""
    yield "| after | vectors of the new model | serves | recall | slowest answer | strategies | |"
    yield "| ---: | ---: | --- | ---: | ---: | --- | --- |"
    yield from map(row, rounds)


def row(one: Round) -> str:
    """Return one row."""
    strategies = ", ".join(sorted(one.strategies))
    return (
        f"| {one.at_s:.0f} s | {one.made} | {one.serves} | {one.recall:.3f} | {1000 * one.slowest_s:.0f} ms"
        f" | {strategies} | {one.note} |"
    )


def size_of(folder: Path) -> int:
    """Return the bytes that a folder takes on the disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def progress(text: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> None:
    """Measure in a temporary directory."""
    parser = argparse.ArgumentParser(prog="python -m bench.model_change", description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000, help="turns of each user (%(default)s)")
    parser.add_argument("--questions", type=int, default=200, help="in a round (%(default)s)")
    parser.add_argument("--models", type=Path, help="a directory of exported models")
    parser.add_argument("--no-reference", action="store_true", help="without the user of the second model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="modestream-model-change-") as directory:
        load = Load.of(options.memories, options.questions)
        sys.exit(asyncio.run(run(Path(directory), options.models, load, compares=not options.no_reference)))


if __name__ == "__main__":
    main()
