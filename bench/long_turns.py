"""`python -m bench.long_turns [--turns 600] [--rounds 2]`: what turns of the length of an assistant's replies cost.

Turns of 4,000 characters until they are embedded, against the embedder alone on the same passages; then a user of each
shape: short turns between people, and chats with an assistant whose replies have 1,300 and 3,800 characters. Of each
shape the bytes on disk a memory, and the round trip of questions, in rounds that alternate between the users. Texts are
joined from our own conversations.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

from agents.rules.text.non_english import is_non_english
from agents.rules.text.passages import cut_passages
from bench.capacity import stored
from bench.harness.embedder_alone import EmbedderAlone
from bench.harness.processes import cpu_seconds
from bench.harness.report import Report
from bench.harness.system import System, running
from bench.ingest import ingest
from bench.retrieval import measure_questions_s
from training.ranking.conversations import read_conversations

LONG_CHARS, LONG_TURNS = 4000, 120
"""Characters of the turns that are embedded, and their number."""

MESSAGE_CHARS = 110
"""The mean of our messages between people."""

SINGLE_TURNS = 15
"""Turns of which each is written when the one before is embedded."""

POLL_S, SINGLE_POLL_S = 0.25, 0.005
"""Between two looks at what is embedded: each costs the worker some ms. The second is that of such a turn."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A user's memories: characters of each second turn, the reply, 0 for a message; all others are messages."""

    key: str
    name: str
    reply_chars: int


SHAPES = (
    Shape("people", "short turns between people", 0),
    Shape("replies", "a chat, replies of 1,300 characters", 1300),
    Shape("long_replies", "a chat, replies of 3,800 characters", 3800),
)


class Texts:
    """Turns of any length and questions, from the conversations in English. Deterministic."""

    def __init__(self) -> None:
        conversations = [
            one for one in read_conversations() if not is_non_english(" ".join(turn.content for turn in one.turns[:20]))
        ]
        self._chance = random.Random(1)
        self._messages = [turn.content for one in conversations for turn in one.turns]
        self._questions = [question.text for one in conversations for question in one.questions]

    def questions(self, count: int) -> list[str]:
        """Return different questions."""
        return self._chance.sample(self._questions, count)

    def turns(self, shape: Shape, count: int) -> list[str]:
        """Return messages and replies in turn."""
        return [self.text(shape.reply_chars if number % 2 else 0) for number in range(count)]

    def text(self, chars: int) -> str:
        """Return paragraphs of about so many characters in all, at least one."""
        paragraphs, length = [self._chance.choice(self._messages)], 0
        while (length := length + len(paragraphs[-1])) < chars - MESSAGE_CHARS // 2:
            paragraphs.append(self._chance.choice(self._messages))
        return "\n\n".join(paragraphs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.long_turns", description=__doc__)
    parser.add_argument("--turns", type=int, default=600, help="of the user of each shape (%(default)s)")
    parser.add_argument("--questions", type=int, default=200, help="of each user in each round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="of questions (%(default)s)")
    options = parser.parse_args()
    report = Report(print)
    with tempfile.TemporaryDirectory(prefix="modestream-long-turns-") as directory:
        asyncio.run(_measure(Path(directory), report, options.turns, options.questions, options.rounds))
    report.print()
    sys.stdout.flush()


async def _measure(directory: Path, report: Report, turns: int, asked: int, rounds: int) -> None:
    texts = Texts()
    async with running(directory / "data") as system:
        await ingest(system.bootstrap, [texts.text(0) for _ in range(200)], "warm")
        await _measure_embedding(directory, system, report, texts)
        await _fill(system, report, texts, turns)
        await _time_questions(system, report, texts.questions(asked), rounds)
    report.fact("load", "load average in the end", round(os.getloadavg()[0], 1))


async def _measure_embedding(directory: Path, system: System, report: Report, texts: Texts) -> None:
    """Report turns until they are embedded, between two measurements of the embedder alone."""
    long = [texts.text(LONG_CHARS) for _ in range(LONG_TURNS)]
    passages = [text[start:end] for text in long for start, end in cut_passages(text)]
    plain = EmbedderAlone(directory / "models", "int8")
    sample = passages[:: len(passages) // 300]
    before, began = plain.texts_per_second(sample), process_time()
    for passage in sample:
        plain.embed(passage)
    alone_ms = 1000 * (process_time() - began) * len(passages) / len(sample) / len(long)
    spent = cpu_seconds(system)
    rates = await ingest(system.bootstrap, long, "long", roles=("assistant",), poll_interval_s=POLL_S)
    spent = {name: seconds - spent[name] for name, seconds in cpu_seconds(system).items()}
    alone = (before + plain.texts_per_second(sample)) / 2
    embedded = rates.embedded * len(passages) / len(long)
    report.section(f"{len(long)} turns of {sum(map(len, long)) // len(long):,} characters, {len(passages)} passages")
    report.number("alone_per_s", "fastembed alone, int8, 1 thread", alone, "passages/s")
    report.number("embedded_per_s", "turns until embedded", rates.embedded, "turns/s")
    report.number("passages_per_s", "their passages", embedded, "passages/s")
    report.ratio("embedded_to_alone", "until embedded / fastembed alone", embedded / alone, ">= 0.9")
    report.number("alone_ms", "processor time of fastembed alone for their passages", alone_ms, "ms/turn")
    for process, seconds in spent.items():
        report.number(f"{process}_ms", f"processor time of the {process}", 1000 * seconds / len(long), "ms/turn")
    single = [
        await ingest(
            system.bootstrap, [texts.text(LONG_CHARS)], f"single-{number}", users=1, poll_interval_s=SINGLE_POLL_S
        )
        for number in range(SINGLE_TURNS)
    ]
    waited = median(1 / rates.embedded for rates in single)
    report.number("single_ms", "one turn at a time, until embedded, p50", 1000 * waited, "ms")
    report.ratio(
        "alone_to_single", "its passages by fastembed alone / that", len(passages) / len(long) / alone / waited
    )


async def _fill(system: System, report: Report, texts: Texts, turns: int) -> None:
    for shape in SHAPES:
        before, memories = stored(system), texts.turns(shape, turns)
        await ingest(system.bootstrap, memories, shape.key, users=1, roles=("user", "assistant"))
        chars = sum(map(len, memories)) // turns
        report.section(f"{shape.name}: {turns} memories of {chars:,} characters")
        for name, size in stored(system).items():
            report.number(f"{shape.key}_{name}_bytes", f"a memory, {name}", (size - before[name]) / turns, "bytes")


async def _time_questions(system: System, report: Report, asked: Sequence[str], rounds: int) -> None:
    times: dict[str, list[tuple[float, float]]] = {shape.key: [] for shape in SHAPES}
    for _ in range(rounds):
        for shape in SHAPES:
            times[shape.key].append(await measure_questions_s(system.bootstrap, f"{shape.key}-0", asked))
    report.section("a question over Kafka")
    for shape in SHAPES:
        p50, p95 = (1000 * median(values) for values in zip(*times[shape.key], strict=True))
        report.number(f"{shape.key}_p50_ms", f"{shape.name}, p50", p50, "ms")
        report.number(f"{shape.key}_p95_ms", f"{shape.name}, p95", p95, "ms")


if __name__ == "__main__":
    main()
