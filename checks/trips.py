"""Count what four requests execute: files, functions and frames. `make check` compares them with `LIMITS`.

The requests go through the pipeline of the stream tests: real steps, agents, rules and databases, with fakes for
broker, embedder and vector index. A file counts if one of its functions is called between the record's arrival
and its last effect; imports and files that also run while the pipeline is idle are left out. Frames are those of the
product on the stack, from delivery to the first effect: a record is written, a hit is made, a tombstone is written.

The exit status is 1 if a figure is above its limit.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

from agents.rules.answer.hits import hit_of
from checks import PRODUCT
from streams.flow.background import boundaries, reading_files
from streams.tables.memory_tables import MemoryTable
from tests.worlds.gateway import http_over
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

ROOT = Path(__file__).parents[1]

EFFECTS = frozenset(function.__code__ for function in (MemoryTable.put, MemoryTable.forget, hit_of))

IDLE_S = 1.2
"""How long the idle pipeline is observed: longer than its polls last."""

TURN, QUESTION = "my favourite colour is dark green", "which colour do I like?"
"""The turn has an item, so that all of its agents run."""

MAX_FRAMES_AIM = 12


@dataclass(frozen=True)
class Limit:
    """The most that a trip may execute: today's figures, to be lowered with the code.

    `aim` is the number of files to reach.
    """

    files: int
    frames: int
    aim: int


LIMITS = {
    "turn": Limit(files=95, frames=19, aim=80),
    "question": Limit(files=66, frames=19, aim=60),
    "forget": Limit(files=74, frames=23, aim=60),
    "HTTP search": Limit(files=80, frames=19, aim=75),
}


@dataclass
class Trip:
    """The functions that a request calls, and the frames at its first effect."""

    functions: set[CodeType] = field(default_factory=set)
    frames: int = 0

    @property
    def files(self) -> list[str]:
        """The files of the functions, from the repository's root."""
        return sorted({_file(code) for code in self.functions})

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call: a function for `sys.setprofile`."""
        if event != "call":
            return
        if not self.frames and frame.f_code in EFFECTS:
            self.frames = _product_frames(frame)
        if _is_product(frame.f_code):
            self.functions.add(frame.f_code)

    def without(self, files: list[str]) -> "Trip":
        """Return the trip without the functions of these files."""
        return Trip({code for code in self.functions if _file(code) not in files}, self.frames)


async def observe(request: Callable[[], Awaitable[Any]]) -> Trip:
    """Run a request, and return what it and the tasks beside it execute."""
    trip = Trip()
    sys.setprofile(trip.note)
    try:
        await request()
    finally:
        sys.setprofile(None)
    return trip


@asynccontextmanager
async def requests_of(directory: Path) -> AsyncIterator[dict[str, Callable[[], Awaitable[Any]]]]:
    """Run a pipeline that has a turn, and yield its requests by the names of `LIMITS`, in the order to be made."""
    # By timers, in the middle of whichever trip, the counts of each user are published, and files are looked for.
    timers = [(boundaries, "PUBLISH_INTERVAL_S"), (reading_files, "LOOK_INTERVAL_S")]
    with ExitStack() as patched:
        for module, interval in timers:
            patched.enter_context(patch.object(module, interval, 3600))
        async with InMemoryPipeline(directory).running() as pipeline, http_over(InMemoryTransport(pipeline)) as gateway:

            async def turn() -> None:
                await pipeline.remember(TURN)
                await pipeline.topics.settled()

            async def question() -> None:
                assert (await pipeline.retrieve(QUESTION))["result"]["hits"]

            async def search() -> None:
                answer = await gateway.post("/v1/users/u1/memories/search", json={"query": QUESTION})
                assert answer.json()["hits"]

            async def forget() -> None:
                reply = await pipeline.command("forget", memory_id=pipeline.memory(TURN).memory_id)
                assert reply["result"]["forgotten"]
                await pipeline.topics.settled()

            await pipeline.remember("I live in a small house by the river")
            await pipeline.topics.settled()
            await pipeline.until(lambda: not pipeline.uncounted_partitions())
            yield {"turn": turn, "question": question, "HTTP search": search, "forget": forget}


async def take_trips(directory: Path) -> dict[str, Trip]:
    """Make each request once, and return what it executes and an idle pipeline doesn't."""
    async with requests_of(directory) as requests:
        idle = await observe(lambda: asyncio.sleep(IDLE_S))
        return {name: (await observe(request)).without(idle.files) for name, request in requests.items()}


def exceeded(trips: dict[str, Trip]) -> list[str]:
    """Return a line for each figure above its limit."""
    return [
        f"{name}: {figure} {what}, and the limit is {most}"
        for name, limit in LIMITS.items()
        for what, figure, most in (
            ("files", len(trips[name].files), limit.files),
            ("frames", trips[name].frames, limit.frames),
        )
        if figure > most
    ]


def main(arguments: list[str]) -> int:
    """Print the figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m checks.trips", description="What four requests execute.")
    parser.add_argument("--files", choices=LIMITS, metavar="TRIP", help=f"list the files of one: {', '.join(LIMITS)}")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        trips = asyncio.run(take_trips(Path(directory)))
    print(f"{'trip':12}{'files':>7}{'limit':>7}{'aim':>5}{'functions':>11}{'frames':>8}{'limit':>7}{'aim':>5}")  # noqa: T201
    for name, limit in LIMITS.items():
        trip = trips[name]
        files = f"{len(trip.files):7}{limit.files:7}{limit.aim:5}"
        print(f"{name:12}{files}{len(trip.functions):11}{trip.frames:8}{limit.frames:7}{MAX_FRAMES_AIM:5}")  # noqa: T201
    problems = exceeded(trips)
    print(*(trips[options.files].files if options.files else ()), *problems, sep="\n")  # noqa: T201
    return 1 if problems else 0


def _file(code: CodeType) -> str:
    return code.co_filename.removeprefix(f"{ROOT}/")


def _is_product(code: CodeType) -> bool:
    """True for functions of the product; an import is no function."""
    return code.co_name != "<module>" and _file(code).startswith(tuple(f"{folder}/" for folder in PRODUCT))


def _product_frames(frame: FrameType | None) -> int:
    count = 0
    while frame is not None:
        count += _is_product(frame.f_code)
        frame = frame.f_back
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
