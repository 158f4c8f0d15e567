"""`python -m bench.as_of`: how much longer a question takes that asks what was known at a time.

Each question is asked without a time, as of now, and as of the middle of the user's records, in turns, so that other
load of the machine falls on all alike. Prints the ratios of the medians.
"""

import argparse
import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from modestream_client import MemoryClient

from bench.harness.filling import prepare
from bench.harness.system import running
from bench.harness.texts import distinct_questions, mixed_turns

USER = "largest"

WARM = 30
"""First questions, not counted."""


async def measure(bootstrap: str, turns: list[str], questions: int) -> dict[str, float]:
    """Return the median seconds of a question by when it asks for."""
    async with MemoryClient(bootstrap, user_id=USER, timeout=60) as client:
        newest = (await client.list_memories(limit=1)).items[0]
        oldest = (await client.list_memories(limit=1, order="oldest")).items[0]
        first, last = (datetime.fromisoformat(item.accepted_at) for item in (oldest, newest))
        asked: dict[str, datetime | None] = {
            "any": None,
            "now": datetime.now(UTC),
            "middle": first + (last - first) / 2,
        }
        times: dict[str, list[float]] = {name: [] for name in asked}
        for question in distinct_questions(turns, questions + WARM, 1):
            for name, as_of in asked.items():
                began = time.perf_counter()
                await client.retrieve(question, as_of=as_of, read_after=None)
                times[name].append(time.perf_counter() - began)
    return {name: median(some[WARM:]) for name, some in times.items()}


async def main() -> None:
    """Fill an empty directory, and ask."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        await prepare(Path(directory), [(USER, options.memories)], lambda _: None)
        async with running(Path(directory)) as system:
            seconds = await measure(system.bootstrap, mixed_turns(1000, 7), options.questions)
    ratios = {f"{name}_ratio": round(seconds[name] / seconds["any"], 3) for name in ("now", "middle")}
    medians = {f"{name}_ms": round(1000 * each, 2) for name, each in seconds.items()}
    print(json.dumps({"memories": options.memories, **medians, **ratios}))


if __name__ == "__main__":
    asyncio.run(main())
