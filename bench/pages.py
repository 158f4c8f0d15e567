"""Times of the window's pages for a user with many memories: `python -m bench.pages [--memories 50000]`.

Fills the stores of a stopped worker, starts a system, and requests every page: idle, then while 1,000 turns are
embedded. Leaves: the shortest, the median and the 95th percentile of each in ms, and every status that is not 200.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from bench.harness.filling import prepare
from bench.harness.system import running
from bench.harness.texts import mixed_turns

USER = "largest"

PAGES = {
    "home": "",
    "memories": "memories",
    "memories, second page": "memories?limit=50&order=oldest",
    "memories, frequent text": "memories?text=the",
    "memories, rare text": "memories?text=RARE",
    "memories, absent text": "memories?text=zzqx",
    "memories, facet": "memories?conversation_id=c-7",
    "conversations": "conversations",
    "conversations, text": "conversations?text=RARE",
    "conversation": "conversations/c-7",
    "ask": "ask?q=When+is+the+dentist",
    "as a prompt": "ask?q=When+is+the+dentist&show=context",
    "map": "map",
    "first points of the map": "map/points?limit=1500",
    "files": "files",
    "modes": "modes",
    "categories": "categories?project=default",
    "health": "health",
    "export": "export",
    "forget": "forget",
}
"""Addresses below `/admin` by the name of the page."""

RARE = max(mixed_turns(4_000, 11)[-1].replace(".", "").split(), key=len)
"""A word of a few texts."""

EMBEDDED = 1000
"""Turns that are embedded meanwhile."""


async def measure(memories: int, rounds: int, directory: Path) -> None:
    """Fill, start, and print both tables."""
    began = time.perf_counter()
    if not (directory / "partitions").exists():
        await prepare(directory, [(USER, memories), ("other", 200)], lambda _: None)
    print(f"{memories:,} memories in {time.perf_counter() - began:.0f} s", flush=True)
    async with running(directory) as system, httpx.AsyncClient(base_url=system.url, timeout=60) as http:
        print(f"ready after {system.seconds_to_ready:.1f} s; idle:", flush=True)
        await time_pages(http, 1)
        await time_pages(http, rounds, shown=True)
        embedding = asyncio.create_task(publish(http))
        print(f"while {EMBEDDED:,} turns are embedded:", flush=True)
        await time_pages(http, max(1, rounds // 2), shown=True)
        print(f"{await embedding:.0f} s to publish", flush=True)


async def publish(http: httpx.AsyncClient) -> float:
    """Publish turns of another user; return the seconds."""
    began, texts = time.perf_counter(), mixed_turns(EMBEDDED, 5)
    for start in range(0, EMBEDDED, 100):
        turns = [
            {"conversation_id": "new", "turn_id": f"n-{number}", "role": "user", "content": texts[number]}
            for number in range(start, start + 100)
        ]
        (await http.post("/v1/users/other/turns", json={"turns": turns})).raise_for_status()
    return time.perf_counter() - began


async def time_pages(http: httpx.AsyncClient, rounds: int, *, shown: bool = False) -> None:
    """Request each page several times, one after the other."""
    for name, page in PAGES.items():
        joint = "&" if "?" in page else "?"
        address = f"/admin{'/' if page else ''}{page.replace('RARE', RARE)}{joint}user={USER}"
        taken, statuses = [], set()
        for _ in range(rounds):
            began = time.perf_counter()
            answer = await http.get(address, headers={"Accept": "text/html"})
            taken.append(1000 * (time.perf_counter() - began))
            statuses.add(answer.status_code)
        if shown:
            p50, p95 = np.percentile(taken, [50, 95])
            wrong = f"  {sorted(statuses)}" if statuses != {200} else ""
            print(f"{name:26}{min(taken):8.0f}{p50:8.0f}{p95:8.0f} ms{wrong}", flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--directory", type=Path, help="keep the data here, and take what is there; default: a temporary folder"
    )
    options = parser.parse_args()
    if options.directory is not None:
        asyncio.run(measure(options.memories, options.rounds, options.directory))
        return
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(options.memories, options.rounds, Path(directory)))


if __name__ == "__main__":
    main()
