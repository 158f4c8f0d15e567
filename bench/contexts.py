"""`python -m bench.contexts [--bootstrap HOST:PORT]`: assembled contexts of sample conversations as a page, for people.

Stores each conversation as a user of its own, as a chat app would, asks the requests of `requests.json` and prints the
page `docs/contexts.md`. What a judge decides is there to be judged: nobody's interaction mode is given.
"""

import argparse
import asyncio
import json
import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from schemas.assemble import SECTIONS
from streams.client import Context, MemoryClient

Json = dict[str, Any]

REQUESTS = Path(__file__).parent / "requests.json"
CONVERSATIONS = Path(__file__).parents[1] / "training" / "ranking" / "conversations"

LONGEST_SHOWN = 320
"""Characters of a memory on the page; the context has it whole."""

WAIT_S = 300
"""Until the vectors of one conversation are there."""

PAGE = """# Assembled contexts

Ten requests within long conversations, and what `assemble.v1` gives for each: which memories, in which section, oldest
first. The conversations are those of `training/ranking/conversations`; the request is asked in the conversation of
one of their sessions, and later sessions are left out. Nobody has told what a request is for: the service has judged.
Long texts are cut on this page, not in the contexts. Made by `python -m bench.contexts`, without a language model.
"""


def turns(sample: Json, name: str, sessions: int) -> Iterator[Json]:
    """The turns of the first sessions, as a chat app publishes them: a conversation for each session."""
    talk = sample["conversation"]
    for number in range(1, sessions + 1):
        start = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for place, said in enumerate(talk[f"session_{number}"]):
            assistant = said["speaker"] in ("Assistant", "Agent")
            yield {
                "content": said["text"],
                "role": said.get("role") or ("assistant" if assistant else "user"),
                "speaker": said["speaker"],
                "conversation_id": f"session-{number}",
                "turn_id": f"{name}/{said['dia_id']}",
                "occurred_at": start + timedelta(seconds=30 * place),
            }


async def asked(bootstrap: str, request: Json) -> Context:
    """Store a conversation for a new user, wait for its vectors, and ask."""
    sample = json.loads((CONVERSATIONS / f"{request['conversation']}.json").read_text())
    async with MemoryClient(bootstrap, user_id=f"reader-{uuid.uuid4()}", timeout=60) as memory:
        for turn in turns(sample, request["conversation"], request["session"]):
            await memory.remember(**turn)
        await _embedded(memory)
        return await memory.assemble(
            request["query"],
            conversation_id=f"session-{request['session']}",
            budget_tokens=request["budget_tokens"],
        )


async def _embedded(memory: MemoryClient) -> None:
    for _ in range(WAIT_S):
        answer = await memory.retrieve("hello", top_k=100)
        if not answer.warnings and all(hit.embedding_status == "ready" for hit in answer.hits):
            return
        await asyncio.sleep(1)


def shown(number: int, request: Json, context: Context) -> str:
    """One context as a chapter of the page."""
    said = {one["memory_id"]: one for one in json.loads(context.messages[1]["content"].partition("\n")[2])["memories"]}
    facts = [
        f"`{request['conversation']}`, session {request['session']}",
        f"**{context.interaction_mode}** ({context.interaction_confidence:.2f})",
        f"{context.tokens['total']} of {request['budget_tokens']} tokens",
        f"{len(said)} memories, {len(context.dropped)} considered and left out",
    ]
    lines = [f"\n## {number}. {request['query']}\n", " · ".join(facts), ""]
    lines += [f"Warning `{notice.code}`: {notice.message}\n" for notice in context.warnings]
    for section in SECTIONS:
        kept = context.sections[section]
        lines.append(f"**{section}** ({context.tokens[section]} tokens)" + ("" if kept else ": none"))
        lines += ["", *(_line(said[one], one in context.sticky) for one in kept), ""]
    return "\n".join(lines)


def _line(said: Json, sticky: bool) -> str:
    text = re.sub(r"\s+", " ", said["content"]).replace("|", "\\|").replace("`", "'")
    text = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN].rstrip()} \u2026"
    return f"- {said['occurred_at'][:10]} {said.get('speaker') or said['role']}: {text}" + (" **(sticky)**" * sticky)


async def page(bootstrap: str, requests: Sequence[Json]) -> str:
    """The whole page."""
    chapters = [shown(number, one, await asked(bootstrap, one)) for number, one in enumerate(requests, 1)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([PAGE, *chapters]))


def main() -> None:
    """Ask a running service, and print the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.contexts", description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    options = parser.parse_args()
    sys.stdout.write(asyncio.run(page(options.bootstrap, json.loads(REQUESTS.read_text()))))


if __name__ == "__main__":
    main()
