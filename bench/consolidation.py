"""What does one consolidation cost as a user's memories grow? `python -m bench.consolidation`.

Planning and distilling by rule over made-up turns of one user: three in ten are said again with some words changed, as
notes of every day are. Vectors are sums of a direction for each word, so that what shares words is near, as with a
model. Each size runs in a process of its own, which tells its time and the most memory that it took beside what it was
given. What the keeper takes to write it is not part of it: some 0.4 ms for each superseded turn.
"""

import json
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from agents.rules.consolidation.candidates import cluster_turns
from agents.rules.consolidation.distillation import Source, distilled_memory
from agents.rules.consolidation.extractive_summary import extractive_summary
from agents.rules.text.tokenizer import tokenize
from bench.texts import short_turns
from schemas.vectors import Matrix

SIZES = (1_000, 10_000, 50_000)
"""Turns of one user."""

DIM = 384
"""Numbers in a vector of the general model."""

REPEATED, TIMES = 0.3, 8
"""Of all turns those that are said again and again, and how often each is."""

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
"""When the first turn was said."""

SCOPE = {"user_id": "ana", "project_id": "default"}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one size: seconds, mebibytes beside the vectors and texts, and what was found."""

    turns: int
    planning_s: float
    distilling_s: float
    most_mib: float
    clusters: int
    superseded: int


def main() -> None:
    """Measure every size, and print a line for each and one of JSON."""
    spawning = multiprocessing.get_context("spawn")
    costs = []
    for size in SIZES:
        with spawning.Pool(1) as pool:
            costs.append(pool.apply(measured, (size,)))
        sys.stdout.write(_line(costs[-1]) + "\n")
    sys.stdout.write(json.dumps([asdict(cost) for cost in costs]) + "\n")


def measured(turns: int) -> Cost:
    """One consolidation of so many turns."""
    texts = _texts(turns)
    sources, vectors = [_source(number, text) for number, text in enumerate(texts)], _vectors(texts)
    before = _most_mib()
    began = time.perf_counter()
    found = cluster_turns(sources, vectors)
    planned = time.perf_counter()
    for cluster in found:
        text = extractive_summary(cluster.sources)
        distilled_memory(SCOPE, "ana", "general", cluster.sources, text, confidence=0.9, run="0-0", at=START)
    ended = time.perf_counter()
    superseded = sum(len(cluster.sources) for cluster in found)
    return Cost(turns, planned - began, ended - planned, _most_mib() - before, len(found), superseded)


def _texts(turns: int) -> list[str]:
    """What is said: most of it once, the rest again and again with two words changed."""
    chance = random.Random(turns)
    texts = short_turns(turns, seed=turns)
    themes = texts[: int(turns * REPEATED / TIMES)]
    for place in range(len(themes), int(turns * REPEATED)):
        words = themes[place % len(themes)].rstrip(".").split()
        for _ in range(2):
            words[chance.randrange(len(words))] = chance.choice(texts[-1].split())
        texts[place] = " ".join(words) + "."
    chance.shuffle(texts)
    return texts


def _source(number: int, text: str) -> Source:
    moment = START + timedelta(minutes=7 * number)
    return Source(
        memory_id=f"00000000-0000-0000-0000-{number:012}",
        turn_id=f"t-{number}",
        content_hash=f"{number:032}",
        text=text,
        voice="user",
        occurred_at=moment,
        latest_at=moment,
        offset=number,
        mode_source="fallback",
        decay="medium",
        importance=None,
    )


def _vectors(texts: Sequence[str]) -> Matrix:
    """A vector for each text, shape (texts, DIM), each of length 1."""
    random_numbers, directions = np.random.default_rng(7), {}
    rows = np.empty((len(texts), DIM), np.float32)
    for place, text in enumerate(texts):
        words = tokenize(text)
        for word in words:
            if word not in directions:
                directions[word] = random_numbers.standard_normal(DIM).astype(np.float32)
        rows[place] = np.sum([directions[word] for word in words], axis=0)
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _most_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _line(cost: Cost) -> str:
    each = 1000 * (cost.planning_s + cost.distilling_s) / cost.turns
    return (
        f"{cost.turns:>7,} turns: {cost.planning_s:6.2f} s planning, {cost.distilling_s:6.2f} s distilling, "
        f"{each:.3f} ms a turn, {cost.most_mib:6.0f} MiB; {cost.clusters:,} clusters of {cost.superseded:,} turns"
    )


if __name__ == "__main__":
    main()
