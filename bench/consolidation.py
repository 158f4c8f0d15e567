"""Cost of one consolidation by number of memories: `python -m bench.consolidation`.

Measures planning and distillation by rules over synthetic turns of one user; three in ten are repeated with some words
changed, like daily notes. Vectors are sums of a random direction per word, so turns with shared words are similar, as
with a model. Each size runs in a process of its own, which reports its time and the peak memory in addition to the
input. Writing the result is not included: about 0.4 ms per superseded turn.
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

from agents.rules.consolidation.distillation import Source, cluster_turns, distilled_memory, extractive_summary
from agents.rules.text.tokenizer import tokenize
from bench.harness.texts import short_turns
from schemas.models.vectors import Matrix

SIZES = (1_000, 10_000, 50_000)
"""Turns of one user."""

DIM = 384
"""Dimensions of the general model's vectors."""

REPEATED, TIMES = 0.3, 8
"""Share of repeated turns, and repetitions of each."""

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
"""Time of the first turn."""

SCOPE = {"user_id": "ana", "project_id": "default"}


@dataclass(frozen=True, slots=True)
class Cost:
    """Result of one size: seconds, peak MiB in addition to vectors and texts, clusters, superseded turns."""

    turns: int
    planning_s: float
    distilling_s: float
    most_mib: float
    clusters: int
    superseded: int


def main() -> None:
    """Measure every size; print a line for each, and one line of JSON."""
    spawning = multiprocessing.get_context("spawn")
    costs = []
    for size in SIZES:
        with spawning.Pool(1) as pool:
            costs.append(pool.apply(measure, (size,)))
        sys.stdout.write(_line(costs[-1]) + "\n")
    sys.stdout.write(json.dumps([asdict(cost) for cost in costs]) + "\n")


def measure(turns: int) -> Cost:
    """Measure one consolidation."""
    texts = _texts(turns)
    sources, vectors = [_source(number, text) for number, text in enumerate(texts)], _vectors(texts)
    before = _peak_mib()
    began = time.perf_counter()
    found = cluster_turns(sources, vectors)
    planned = time.perf_counter()
    for cluster in found:
        text = extractive_summary(cluster.sources)
        distilled_memory(SCOPE, "ana", "general", cluster.sources, text, confidence=0.9, run="0-0", at=START)
    ended = time.perf_counter()
    superseded = sum(len(cluster.sources) for cluster in found)
    return Cost(turns, planned - began, ended - planned, _peak_mib() - before, len(found), superseded)


def _texts(turns: int) -> list[str]:
    """Return texts: most occur once, the rest repeatedly with two words changed."""
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
    """Return a unit vector for each text, shape (texts, DIM)."""
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


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _line(cost: Cost) -> str:
    each = 1000 * (cost.planning_s + cost.distilling_s) / cost.turns
    return (
        f"{cost.turns:>7,} turns: {cost.planning_s:6.2f} s planning, {cost.distilling_s:6.2f} s distilling, "
        f"{each:.3f} ms a turn, {cost.most_mib:6.0f} MiB; {cost.clusters:,} clusters of {cost.superseded:,} turns"
    )


if __name__ == "__main__":
    main()
