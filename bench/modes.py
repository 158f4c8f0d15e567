"""`python -m bench.modes PATH... [--bootstrap HOST:PORT]`: what each interaction mode leaves in a context.

A PATH is as for `bench.recall`. Every question is asked in each interaction mode, and as the service classifies it, in
no conversation and in the last one. Coverage is the mean share of the evidence whose whole text is in the context;
"unwanted" is the share of the memories' tokens that belong to kinds that the mode's table drops, without sticky
memories. Kinds are told by the turns' labels and interaction modes. Then `login_page.json`: thirty turns of each of
four named kinds.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from modestream_client import Context, MemoryClient, Remembered

from agents.rules.context.section_candidates import is_dropped, prevailing_labels
from agents.rules.cues.labels import SentenceLabel, label_text
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from schemas.state.interaction import INTERACTION_MODES, Interaction
from streams.adapters.tiktoken_counter import TiktokenCounter
from streams.bootstrap.adapters import MODE_TAXONOMY
from training.ranking.conversations import Conversation, read_conversations

AT_ONCE = 8
"""Requests at the same time."""

STORED_AT_ONCE = 50
"""Turns that are published at the same time."""

MAX_WAIT_S = 900
"""Time limit for embedding the turns of one conversation."""

CLASSIFIED = "classified"
"""In place of a mode: the service decides."""

BUDGETS = (1000, 2000, 4000)
"""Tokens of the contexts of the named kinds; of all others `BUDGETS[1]`."""

DROPPED = {
    "TASK": ("idea",),
    "EXPLORATION": ("trace",),
    "DEBUGGING": ("idea", "finished"),
    "LEARNING": ("trace", "finished"),
    "GENERAL": (),
}
"""The named kinds that each mode drops, by its table."""

COUNTER = TiktokenCounter()
TAXONOMY = ModeTaxonomy.loads(MODE_TAXONOMY.read_text())


@dataclass(slots=True)
class Shares:
    """Of each context: the unwanted share of its tokens, the share of the evidence in it, and its tokens."""

    unwanted: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        unwanted, covered = (100 * np.mean(shares) for shares in (self.unwanted, self.covered))
        return f"{unwanted:.1f} | {covered:.1f} | {np.mean(self.tokens):.0f}"


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of one user's memories: texts, labels and interaction mode by id."""

    texts: dict[str, str]
    labels: dict[str, int]
    interactions: dict[str, Any]

    def unwanted(self, context: Context, sizes: dict[str, int], mode: Any, window: frozenset[str]) -> float:
        """Return the share of a context's tokens that are of kinds that the mode drops."""
        table, lost = TAXONOMY.modes[mode], 0
        for memory_id, tokens in sizes.items():
            labels = self.labels.get(memory_id)
            if labels is not None and memory_id not in context.sticky:
                labels = prevailing_labels(self.texts[memory_id], labels, table.drop)
                is_lost = is_dropped(table, labels, self.interactions[memory_id], in_window=memory_id in window)
                lost += tokens * is_lost
        return lost / max(sum(sizes.values()), 1)


def entries(context: Context) -> dict[str, str]:
    """Return the entries of a context by memory id."""
    days = json.loads(context.messages[1]["content"].partition("\n")[2])["memories"]
    return dict(zip(context.references, [entry for texts in days.values() for entry in texts], strict=True))


async def sizes_of(context: Context) -> dict[str, int]:
    """Return the tokens of the entries of a context by memory id."""
    shown = entries(context)
    return dict(zip(shown, await COUNTER.count(list(shown.values())), strict=True))


async def store(memory: MemoryClient, user: str, turns: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Store the turns of a user, wait for their vectors, and return the memory ids by turn id."""
    accepted: list[Remembered] = []
    for start in range(0, len(turns), STORED_AT_ONCE):
        batch = turns[start : start + STORED_AT_ONCE]
        accepted += await asyncio.gather(*(memory.remember(user_id=user, **turn) for turn in batch))
    ids = {turn["turn_id"]: str(reply.memory_id) for turn, reply in zip(turns, accepted, strict=True)}
    for _ in range(MAX_WAIT_S):
        health = await memory.health(user_id=user)
        if not health.modes["general"].pending:
            return ids
        await asyncio.sleep(1)
    raise TimeoutError(user)


async def kinds_of(memory: MemoryClient, user: str, turns: Sequence[dict[str, Any]], ids: dict[str, str]) -> Kinds:
    """Read the kinds of a user's turns."""
    labels = {
        ids[turn["turn_id"]]: int(label_text(turn["content"]) | SentenceLabel[turn["role"].upper()]) for turn in turns
    }
    records = await asyncio.gather(*(memory.get_memory(memory_id, user_id=user) for memory_id in ids.values()))
    texts = {ids[turn["turn_id"]]: turn["content"] for turn in turns}
    return Kinds(
        texts,
        labels,
        {
            record.memory_id: None
            if record.interaction_mode is None
            else Interaction(mode=record.interaction_mode, confidence=record.interaction_confidence or 0)
            for record in records
        },
    )


async def measure(
    memory: MemoryClient, conversation: Conversation, options: argparse.Namespace, rows: dict[tuple[str, bool], Shares]
) -> None:
    """Ask all questions of a conversation in all modes, in its last conversation and in none."""
    user = f"{conversation.name}-{options.suffix}"
    turns: list[dict[str, Any]] = [
        {"content": turn.content, "role": turn.role, "speaker": turn.speaker, "turn_id": turn.turn_id}
        | {"conversation_id": turn.conversation_id, "occurred_at": turn.occurred_at}
        | {"resources": [resource.model_dump() for resource in turn.resources]}
        for turn in conversation.turns
    ]
    ids = await store(memory, user, turns)
    kinds = await kinds_of(memory, user, turns, ids)
    said = {turn["turn_id"]: turn["content"].strip() for turn in turns}
    last = turns[-1]["conversation_id"]
    window = frozenset(ids[turn["turn_id"]] for turn in turns if turn["conversation_id"] == last)
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(question: Any, mode: Any, where: str | None) -> None:
        async with gate:
            context = await memory.assemble(
                question.text,
                user_id=user,
                conversation_id=where,
                budget_tokens=BUDGETS[1],
                interaction_mode=None if mode == CLASSIFIED else mode,
            )
        shown = "\n".join(entries(context).values())
        evidence = [turn_id for turn_id in question.evidence if turn_id in said]
        row = rows.setdefault((mode, where is not None), Shares())
        sizes = await sizes_of(context)
        row.unwanted.append(kinds.unwanted(context, sizes, context.interaction_mode, window if where else frozenset()))
        row.tokens.append(context.tokens["total"])
        if evidence:
            row.covered.append(sum(said[turn_id] in shown for turn_id in evidence) / len(evidence))

    await asyncio.gather(
        *(
            ask(question, mode, where)
            for question in conversation.questions[:: options.every]
            for mode in options.modes
            for where in (None, last)
        )
    )


async def measure_named(memory: MemoryClient, suffix: str) -> None:
    """Print how many turns of each named kind stand in the contexts of each mode."""
    page = json.loads((Path(__file__).parent / "login_page.json").read_text())
    turns = [
        {"content": text, "role": "user", "speaker": "Ana", "turn_id": f"{kind}-{place}", "conversation_id": "old"}
        | {"occurred_at": f"2026-03-{1 + place // 2:02}T{10 + place % 2}:{10 * kind_place:02}:00Z"}
        for kind_place, (kind, texts) in enumerate(page["turns"].items())
        for place, text in enumerate(texts)
    ]
    user = f"login-page-{suffix}"
    ids = await store(memory, user, sorted(turns, key=lambda turn: turn["occurred_at"]))
    kind_of = {memory_id: turn_id.partition("-")[0] for turn_id, memory_id in ids.items()}
    print("\n| mode, budget, conversation | " + " | ".join(page["turns"]) + " | dropped kinds, % of tokens |")
    for mode in INTERACTION_MODES:
        for budget, where in ((budget, where) for budget in BUDGETS for where in (None, "old")):
            contexts = [
                await memory.assemble(
                    text, user_id=user, conversation_id=where, budget_tokens=budget, interaction_mode=mode
                )
                for text in page["requests"]
            ]
            counts = [
                np.mean([sum(kind_of.get(ref) == kind for ref in made.references) for made in contexts])
                for kind in page["turns"]
            ]
            shares = []
            for made in contexts:
                sizes = await sizes_of(made)
                lost = [ref for ref in sizes if kind_of.get(ref) in DROPPED[mode] and ref not in made.sticky]
                shares.append(sum(sizes[ref] for ref in lost) / max(sum(sizes.values()), 1))
            figures = " | ".join(f"{count:.1f}" for count in counts)
            print(f"| {mode}, {budget}, {where or 'none'} | {figures} | {100 * np.mean(shares):.1f} |")


async def run(options: argparse.Namespace) -> None:
    """Measure all conversations, by path, then the named kinds."""
    async with MemoryClient(options.bootstrap, timeout=120) as memory:
        for path in options.paths:
            rows: dict[tuple[str, bool], Shares] = {}
            for conversation in read_conversations(path):
                await measure(memory, conversation, options, rows)
            print(f"\n{path.name}\n| mode, in a conversation | unwanted | coverage | tokens |")
            for mode, inside in sorted(rows):
                print(f"| {mode}, {'yes' if inside else 'no'} | {rows[mode, inside]} |", flush=True)
        await measure_named(memory, options.suffix)


def main() -> None:
    """Print the figures, from a running service."""
    parser = argparse.ArgumentParser(prog="python -m bench.modes", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--suffix", default="1", help="of the users' names: another one stores everything again")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question")
    parser.add_argument("--modes", nargs="+", default=[*INTERACTION_MODES, CLASSIFIED], help="of the questions of PATH")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
