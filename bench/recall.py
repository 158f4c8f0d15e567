"""Evidence recall on conversations with questions, of this product and of others: `python -m bench.recall PATH...`.

A PATH is a folder of `conv-*.json`, or a file with a list of conversations, both in LoCoMo's format. Recall@k is the
mean, over the questions that have evidence, of the share of the evidence among the first k turns found; no language
model takes part. Every conversation is a user of its own; a turn is `speaker: text [image: caption]` where a system
takes one text. `--write` replaces docs/recall.md; `--peers FILE` adds the lines that scripts of `bench/peers` wrote.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import qdrant_edge as edge
from modestream_client import MemoryClient

from bench.harness.embedder_alone import DIM, MODEL, EmbedderAlone
from bench.harness.system import ROOT, running
from schemas.messages.turns import Turn
from training.ranking.conversations import Conversation, LabelledQuestion, read_conversations

KS = (5, 10)
"""Numbers of turns found."""

PAGE = ROOT / "docs" / "recall.md"

RRF_K, PREFETCH = 2, 50
"""Qdrant's default of the constant of reciprocal rank fusion, and candidates of each of both searches."""

AT_ONCE = 50
"""Turns that are published, or questions that are asked, at the same time."""

Find = Callable[[Conversation, LabelledQuestion], Awaitable[list[str]]]
"""Returns the ids of the turns that a question finds, best first."""


@dataclass(frozen=True, slots=True)
class Row:
    """Recall of one system, at each of `KS`, in per cent."""

    system: str
    recall: tuple[float, ...]

    def __str__(self) -> str:
        return f"| {self.system} | {' | '.join(f'{value:.1f}' for value in self.recall)} |"


async def _measured(system: str, conversations: Sequence[Conversation], find: Find) -> Row:
    places = asyncio.Semaphore(AT_ONCE)

    async def shares(one: Conversation, question: LabelledQuestion) -> list[float]:
        async with places:
            found = await find(one, question)
        return [len({*found[:k]} & {*question.evidence}) / max(question.named, 1) for k in KS]

    asked = [shares(one, question) for one in conversations for question in one.questions]
    means = np.mean(await asyncio.gather(*asked), axis=0)
    return Row(system, tuple(round(100 * float(value), 1) for value in means))


def text_of(turn: Turn) -> str:
    """Return a turn as one text."""
    captions = "".join(f" [image: {one.text}]" for one in turn.resources if one.text)
    return f"{turn.speaker}: {turn.content}{captions}"


class VectorStore:
    """What a vector store makes of the conversations: each in an exact index of its own."""

    def __init__(self, conversations: Sequence[Conversation], folder: Path) -> None:
        """Embed all turns and index them in shards of Qdrant Edge below `folder`."""
        self._embedder = EmbedderAlone(folder / "models", "int8")
        self._bm25 = edge.Bm25()
        self._shards: dict[str, edge.EdgeShard] = {}
        for one in conversations:
            (folder / one.name).mkdir()
            config = edge.EdgeConfig(
                vectors={"dense": edge.EdgeVectorParams(size=DIM, distance=edge.Distance.Cosine)},
                sparse_vectors={"words": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            )
            shard = self._shards[one.name] = edge.EdgeShard.create(str(folder / one.name), config)
            points = [self._point(number, text_of(turn)) for number, turn in enumerate(one.turns)]
            shard.update(edge.UpdateOperation.upsert_points(points))

    def _point(self, number: int, text: str) -> edge.Point:
        return edge.Point(number, {"dense": self._embedder.embed(text), "words": self._bm25.embed_document(text)}, {})

    async def by_cosine(self, one: Conversation, question: LabelledQuestion) -> list[str]:
        """Find by the vectors alone."""
        query = edge.Query.Nearest(self._embedder.embed(question.text), using="dense")
        return self._found(one, edge.QueryRequest(limit=max(KS), query=query))

    async def by_fusion(self, one: Conversation, question: LabelledQuestion) -> list[str]:
        """Find by vectors and by words, fused by reciprocal rank."""
        dense = edge.Query.Nearest(self._embedder.embed(question.text), using="dense")
        words = edge.Query.Nearest(self._bm25.embed_query(question.text), using="words")
        prefetches = [edge.Prefetch(limit=PREFETCH, query=query) for query in (dense, words)]
        fusion: Any = edge.Fusion.Rrf(k=RRF_K)  # not a subclass in its stubs
        fused = edge.QueryRequest(limit=max(KS), query=fusion, prefetches=prefetches)
        return self._found(one, fused)

    def _found(self, one: Conversation, request: edge.QueryRequest) -> list[str]:
        return [str(one.turns[int(point.id)].turn_id) for point in self._shards[one.name].query(request)]


async def measure_product(conversations: Sequence[Conversation], folder: Path) -> Row:
    """Start the system, publish the conversations over Kafka, and ask it."""
    async with running(folder) as system, MemoryClient(system.bootstrap, timeout=60) as memory:
        for one in conversations:
            for start in range(0, len(one.turns), AT_ONCE):
                await asyncio.gather(*(_remember(memory, one, turn) for turn in one.turns[start : start + AT_ONCE]))
            await _embedded(memory, one.name)

        async def find(one: Conversation, question: LabelledQuestion) -> list[str]:
            answer = await memory.retrieve(question.text, users=one.name, top_k=max(KS))
            return list(dict.fromkeys(span.turn_id for hit in answer.hits for span in hit.evidence))

        return await _measured("**modestream**, over Kafka", conversations, find)


async def _embedded(memory: MemoryClient, user: str) -> None:
    """Return once all memories of a user have their vectors."""
    while True:
        health = await memory.command("health", user_id=user)
        if not health["modes"]["general"]["pending"]:
            return
        await asyncio.sleep(1)


async def _remember(memory: MemoryClient, one: Conversation, turn: Turn) -> None:
    await memory.remember(
        turn.content,
        user_id=one.name,
        role=turn.role,
        conversation_id=turn.conversation_id,
        speaker=turn.speaker,
        occurred_at=turn.occurred_at,
        turn_id=turn.turn_id,
        resources=[resource.model_dump() for resource in turn.resources],
    )


async def measure(conversations: Sequence[Conversation]) -> list[Row]:
    """Return the rows of all systems that this environment has."""
    with tempfile.TemporaryDirectory() as folder:
        store = VectorStore(conversations, Path(folder))
        rows = [
            await _measured("cosine over vectors alone", conversations, store.by_cosine),
            await _measured(
                f"qdrant-edge {version('qdrant-edge-py')}, vectors and BM25 fused by rank",
                conversations,
                store.by_fusion,
            ),
        ]
    with tempfile.TemporaryDirectory() as folder:
        return [*rows, await measure_product(conversations, Path(folder))]


def page_of(rows: Sequence[Row], conversations: Sequence[Conversation]) -> str:
    """Return the page of a run."""
    turns = sum(len(one.turns) for one in conversations)
    questions = sum(len(one.questions) for one in conversations)
    names = " ".join(one.name for one in conversations)
    heads = " | ".join(f"recall@{k}" for k in KS)
    return f"""\
# Recall, beside other systems

Evidence recall in per cent: the share of the evidence among the first turns found, {questions} questions on
{turns:,} turns, with {MODEL} in every row and no language model. Printed by the second command on
{datetime.now(UTC):%Y-%m-%d}.

| system | {heads} |
| --- |{" --- |" * len(KS)}
{"".join(f"{row}{chr(10)}" for row in rows)}
The conversations are five of LoCoMo's ten (`data/locomo10.json` of snap-research/LoCoMo, CC BY-NC 4.0), which are no
part of this repository. The first command needs [uv](https://docs.astral.sh/uv/) and downloads mem0, its models and the
embedding model.

```sh
uv run bench/peers/mem0_recall.py locomo10.json --only {names} > peers.jsonl
python -m bench.recall locomo10.json --only {names} --peers peers.jsonl --write
```

Every conversation is a user of its own. A turn is `speaker: text [image: caption]`, or the same as fields where a
system has them. "cosine" and "qdrant-edge" are exact searches in shards of Qdrant Edge; the fused one joins {PREFETCH}
candidates by vectors and {PREFETCH} by its BM25 by reciprocal rank, k {RRF_K}. modestream starts with its defaults, is
given the turns over Kafka, and is asked once all have their vectors.
"""


def main() -> None:
    """Measure, print the page, and write it on demand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of these conversations, such as conv-26")
    parser.add_argument("--peers", type=Path, metavar="FILE", help="lines of JSON that scripts of bench/peers wrote")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    conversations = [
        one
        for path in options.paths
        for one in read_conversations(path)
        if options.only is None or one.name in options.only
    ]
    *others, product = asyncio.run(measure(conversations))
    peers = [] if options.peers is None else [json.loads(line) for line in options.peers.read_text().splitlines()]
    rows = sorted([*others, *(Row(one["system"], tuple(one["recall"])) for one in peers)], key=lambda row: row.recall)
    page = page_of([*rows, product], conversations)
    sys.stdout.write(page)
    if options.write:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
