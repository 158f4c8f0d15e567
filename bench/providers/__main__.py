"""Evidence recall of the providers, as their benchmarks call them: `python -m bench.providers PATH --only NAME...`.

A PATH is one of `python -m bench.recall`. It starts `modestream up`, gives it the conversations by each provider, in
the form in which its benchmark has them, and asks their questions; no language model takes part. Stand-ins have the
signatures of the benchmarks' packages.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.harness.system import running
from bench.recall import KS, Find, Row, VectorStore, _measured, text_of
from tests.fakes import benchmarks
from training.ranking.conversations import Conversation, LabelledQuestion, read_conversations


def by_amb(conversations: Sequence[Conversation]) -> Find:
    """Give a document for each session, as LoCoMo's dataset has them there."""
    from bench.providers.amb import ModestreamMemoryProvider  # noqa: PLC0415 - imports the benchmark's package

    provider: Any = ModestreamMemoryProvider()
    provider.initialize()
    provider.prepare(Path("outputs/sample/modestream/_store/all/all"), {each.name for each in conversations})
    for conversation in conversations:
        sessions: dict[str, list[Any]] = {}
        for turn in conversation.turns:
            sessions.setdefault(turn.conversation_id, []).append(turn)
        provider.ingest(
            [
                benchmarks.Document(
                    id=name,
                    content=json.dumps([{"speaker": turn.speaker, "text": _text(turn)} for turn in turns]),
                    user_id=conversation.name,
                    timestamp=turns[0].occurred_at.isoformat(),
                )
                for name, turns in sessions.items()
            ]
        )

    async def find(conversation: Conversation, question: LabelledQuestion) -> list[str]:
        ids: dict[str, list[str]] = {}
        for turn in conversation.turns:
            ids.setdefault(turn.conversation_id, []).append(str(turn.turn_id))
        found, raw = await asyncio.to_thread(provider.retrieve, question.text, max(KS), conversation.name)
        return [ids[document.id][number] for document, number in zip(found, raw["numbers"], strict=True)]

    return find


def by_omnimemeval(conversations: Sequence[Conversation]) -> Find:
    """Give the messages of each session, as LoCoMo's ingestion does there."""
    from bench.providers.omnimemeval import ModestreamClient  # noqa: PLC0415 - imports the benchmark's package

    client = ModestreamClient()
    ids: dict[tuple[str, str], str] = {}
    for conversation in conversations:
        sessions: dict[str, list[Any]] = {}
        for turn in conversation.turns:
            ids[conversation.name, " ".join(f"{turn.speaker}: {_text(turn)}".split())] = str(turn.turn_id)
            at = turn.occurred_at
            said = {"role": turn.role, "name": turn.speaker, "content": f"{turn.speaker}: {_text(turn)}"}
            sessions.setdefault(turn.conversation_id, []).append(said | {"chat_time": at and at.isoformat()})
        client.delete(f"omni-{conversation.name}")
        for messages in sessions.values():
            client.add(messages, f"omni-{conversation.name}")

    async def find(conversation: Conversation, question: LabelledQuestion) -> list[str]:
        lines = await asyncio.to_thread(client.search, question.text, f"omni-{conversation.name}", max(KS))
        texts = [line.partition("] ")[2] for line in lines.splitlines()]
        return [ids[conversation.name, text] for text in texts if (conversation.name, text) in ids]

    return find


def _text(turn: Any) -> str:
    return text_of(turn).removeprefix(f"{turn.speaker}: ")


async def measure(conversations: Sequence[Conversation]) -> list[Row]:
    """Return the recall of plain vectors and of each provider."""
    with tempfile.TemporaryDirectory() as folder:
        store = VectorStore(conversations, Path(folder))
        rows = [await _measured("cosine over vectors alone", conversations, store.by_cosine)]
    with tempfile.TemporaryDirectory() as folder:
        async with running(Path(folder)) as system:
            os.environ["MODESTREAM_URL"] = system.url
            for name, provider in {"AMB": by_amb, "OmniMemEval": by_omnimemeval}.items():
                began = time.perf_counter()
                find = await asyncio.to_thread(provider, conversations)
                sys.stderr.write(f"{name}: stored in {time.perf_counter() - began:.0f} s\n")
                rows.append(await _measured(f"modestream, by the provider for {name}", conversations, find))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, metavar="PATH")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of these conversations, such as conv-26")
    options = parser.parse_args()
    benchmarks.install()
    conversations = [
        each for each in read_conversations(options.path) if options.only is None or each.name in options.only
    ]
    turns, asked = sum(len(each.turns) for each in conversations), sum(len(each.questions) for each in conversations)
    sys.stdout.write(f"{len(conversations)} conversations, {turns} turns, {asked} questions\n")
    for row in asyncio.run(measure(conversations)):
        sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    main()
