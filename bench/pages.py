"""Times of the window's pages by the user's memories: `python -m bench.pages [--memories 3000 50000 100000]`.

Fills the stores of a stopped worker with one user for each number, starts a system, and requests every page: idle, then
while 1,000 turns are embedded. Leaves: the median and the 95th percentile of each page in ms, the processor time that
worker and gateway spent on one (idle), which other load on the machine does not change, and every status but 200.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from bench.harness.filling import prepare
from bench.harness.processes import cpu_seconds
from bench.harness.system import System, running
from bench.harness.texts import distinct_questions, mixed_turns

PAGES = {
    "home": "",
    "memories": "memories",
    "memories, oldest first": "memories?limit=50&order=oldest",
    "memories, frequent text": "memories?text=the",
    "memories, rare text": "memories?text=RARE",
    "memories, words apart": "memories?text=RARE+table+the",
    "memories, absent text": "memories?text=zzqx",
    "memories, of a conversation": "memories?conversation_id=c-7",
    "memory": "memories/MEMORY",
    "memory, similar ones": "memories/MEMORY?similar=1",
    "conversations": "conversations",
    "conversations, frequent text": "conversations?text=the",
    "conversations, rare text": "conversations?text=RARE",
    "conversation": "conversations/c-7",
    "ask": "ask?q=QUESTION",
    "ask, modes side by side": "ask?q=QUESTION&show=modes",
    "ask, as a prompt": "ask?q=QUESTION&show=context",
    "map": "map",
    "map, first points": "map/points?limit=1000",
    "map, 20,000 points": "map/points",
    "map, suggestions": "map/suggestions",
    "files": "files",
    "modes": "modes",
    "modes, suggestions": "modes?suggest=1",
    "categories": "categories?project=default",
    "intention": "intention?project=default",
    "consolidations": "consolidations?project=default",
    "runs": "runs",
    "health": "health",
    "dead letters": "dead-letters",
    "pipelines": "pipelines",
    "settings": "settings",
    "users": "users",
    "add": "add",
    "export": "export",
    "forget": "forget",
}
"""Addresses below `/admin` by the name of the page."""

TEXTS = mixed_turns(4_000, 11)

RARE = next(word for word, count in Counter(" ".join(TEXTS).split()).items() if count == 1 and word.isalpha())
"""A word of one of these texts; of a larger store, of a few."""

EMBEDDED = 1000
"""Turns that are embedded meanwhile."""

PATIENT = {"Prefer": "wait=60"}


@dataclass(frozen=True, slots=True)
class Visitor:
    """Requests pages of one user."""

    http: httpx.AsyncClient
    user: str
    memory_id: str
    questions: Iterator[str]
    """Different ones: the vector of a repeated question is not made again."""

    @classmethod
    async def of(cls, http: httpx.AsyncClient, user: str) -> "Visitor":
        listed = (await http.get(f"/v1/users/{user}/memories", params={"limit": 1})).raise_for_status().json()
        questions = distinct_questions(TEXTS, 8 * len(TEXTS), len(user))
        return cls(http, user, listed["items"][0]["memory_id"], iter(questions))

    async def times(self, page: str, rounds: int, processor_s: Callable[[], float]) -> str:
        """Request a page several times, one after the other; return the cells of a table."""
        taken, statuses, before = [], set(), processor_s()
        for _ in range(rounds):
            address = self._address(page)
            began = time.perf_counter()
            answer = await self.http.get(address, headers={"Accept": "text/html"})
            taken.append(1000 * (time.perf_counter() - began))
            statuses.add(answer.status_code)
        p50, p95 = np.percentile(taken, [50, 95])
        wrong = "" if statuses == {200} else f" {sorted(statuses)}"
        return f"{p50:7.0f}{p95:7.0f}{1000 * (processor_s() - before) / rounds:7.0f}{wrong}"

    def _address(self, page: str) -> str:
        if "QUESTION" in page:
            page = page.replace("QUESTION", next(self.questions).replace(" ", "+"))
        page = page.replace("RARE", RARE).replace("MEMORY", self.memory_id)
        joint = "&" if "?" in page else "?"
        return f"/admin{'/' if page else ''}{page}{joint}user={self.user}"


async def measure(memories: Sequence[int], rounds: int, named: str, directory: Path) -> None:
    """Fill, start, and print both tables."""
    if not (directory / "partitions").exists():
        users = [(f"user-{number}", number) for number in memories]
        await prepare(directory, [*users, ("other", 200)], lambda _: None)
    async with running(directory) as system, httpx.AsyncClient(base_url=system.url, timeout=60) as http:
        visitors = [await Visitor.of(http, f"user-{number}") for number in memories]
        pages = {name: page for name, page in PAGES.items() if named in name}
        show(f"ready after {system.seconds_to_ready:.1f} s")
        for visitor in visitors:
            for page in pages.values():
                await visitor.times(page, 1, lambda: 0.0)
        await print_table(system, visitors, pages, rounds, "idle")
        embedding = asyncio.create_task(publish(http))
        await print_table(system, visitors, pages, max(1, rounds // 4), f"while {EMBEDDED:,} turns are embedded")
        show(f"{await embedding:.0f} s to publish and embed")


async def print_table(
    system: System, visitors: Sequence[Visitor], pages: dict[str, str], rounds: int, state: str
) -> None:
    """Print p50, p95 and processor time of each page, by user."""

    def processor_s() -> float:
        spent = cpu_seconds(system)
        return spent["worker"] + spent["gateway"]

    show(f"{state}; load {os.getloadavg()[0]:.1f}; p50, p95, processor time in ms of " + _names(visitors))
    for name, page in pages.items():
        cells = [await visitor.times(page, rounds, processor_s) for visitor in visitors]
        show(f"{name:30}" + "  |".join(cells))
    show(f"load {os.getloadavg()[0]:.1f}")


def _names(visitors: Sequence[Visitor]) -> str:
    return ", ".join(visitor.user for visitor in visitors)


async def publish(http: httpx.AsyncClient) -> float:
    """Publish turns of another user and wait until they are embedded; return the seconds."""
    began, texts = time.perf_counter(), mixed_turns(EMBEDDED, 5)
    for start in range(0, EMBEDDED, 100):
        turns = [
            {"conversation_id": "new", "turn_id": f"n-{number}", "role": "user", "content": texts[number]}
            for number in range(start, start + 100)
        ]
        (await http.post("/v1/users/other/turns", json={"turns": turns}, headers=PATIENT)).raise_for_status()
    while True:
        health = (await http.get("/v1/users/other/health")).raise_for_status().json()
        if not health["modes"]["general"]["pending"]:
            return time.perf_counter() - began
        await asyncio.sleep(1)


def show(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, nargs="+", default=[3_000, 50_000, 100_000])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--named", default="", help="only pages with this in their name")
    parser.add_argument(
        "--directory", type=Path, help="keep the data here, and take what is there; default: a temporary folder"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        kept: Path = options.directory or Path(directory)
        asyncio.run(measure(options.memories, options.rounds, options.named, kept))


if __name__ == "__main__":
    main()
