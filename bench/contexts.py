"""`python -m bench.contexts [--bootstrap HOST:PORT]`: print a page of assembled contexts for human review.

Stores each sample conversation as a user of its own, as a chat app would, sends the requests of `requests.json` and
prints the page `docs/contexts.md`. No interaction mode is given, so the page shows the classifier's decisions too.
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

from modestream_client import Context, MemoryClient
from modestream_client.contexts import SECTIONS

Json = dict[str, Any]

REQUESTS = Path(__file__).parent / "requests.json"
CONVERSATIONS = Path(__file__).parents[1] / "training" / "ranking" / "conversations"

MAX_SHOWN_CHARS = 320
"""Characters of a memory shown on the page; the context has the full text."""

MAX_WAIT_S = 300
"""Time limit for embedding one conversation."""

PAGE = """# Assembled contexts

Ten requests within long conversations, and what `assemble.v1` gives for each: which memories, in which section, oldest
first. The conversations are those of `training/ranking/conversations`; the request is asked in the conversation of
one of their sessions, and later sessions are left out. No interaction mode is given: the service has classified
the requests. Of a long reply a context has the passages that answer, with ` … ` where text is left out; this page cuts
further.

Made by `python -m bench.contexts`, without a language model.
"""


def turns(sample: Json, name: str, sessions: int) -> Iterator[Json]:
    """Yield the turns of the first sessions as a chat app publishes them, with a conversation for each session."""
    by_session = sample["conversation"]
    for number in range(1, sessions + 1):
        start = datetime.strptime(by_session[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for place, turn in enumerate(by_session[f"session_{number}"]):
            is_assistant = turn["speaker"] in ("Assistant", "Agent")
            yield {
                "content": turn["text"],
                "role": turn.get("role") or ("assistant" if is_assistant else "user"),
                "speaker": turn["speaker"],
                "conversation_id": f"session-{number}",
                "turn_id": f"{name}/{turn['dia_id']}",
                "occurred_at": start + timedelta(seconds=30 * place),
            }


async def assemble(bootstrap: str, request: Json) -> Context:
    """Store a conversation for a new user, wait for its vectors, and request the context."""
    sample = json.loads((CONVERSATIONS / f"{request['conversation']}.json").read_text())
    async with MemoryClient(bootstrap, user_id=f"reader-{uuid.uuid4()}", timeout=60) as memory:
        for turn in turns(sample, request["conversation"], request["session"]):
            await memory.remember(**turn)
        await _wait_until_embedded(memory)
        return await memory.assemble(
            request["query"], conversation_id=f"session-{request['session']}", budget_tokens=request["budget_tokens"]
        )


async def _wait_until_embedded(memory: MemoryClient) -> None:
    for _ in range(MAX_WAIT_S):
        answer = await memory.retrieve("hello", top_k=100)
        if not answer.warnings and all(hit.embedding_status == "ready" for hit in answer.hits):
            return
        await asyncio.sleep(1)


def render_chapter(number: int, request: Json, context: Context) -> str:
    """Return one context as a chapter of the page."""
    days = json.loads(context.messages[1]["content"].partition("\n")[2])["memories"]
    entries = [f"{day} {entry.partition('] ')[2]}" for day, entries in days.items() for entry in entries]
    memories = dict(zip(context.references, entries, strict=True))
    facts = [
        f"`{request['conversation']}`, session {request['session']}",
        f"**{context.interaction_mode}** ({context.interaction_confidence:.2f})",
        f"{context.tokens['total']} of {request['budget_tokens']} tokens",
        f"{len(memories)} memories, {len(context.dropped)} considered and left out",
    ]
    lines = [f"\n## {number}. {request['query']}\n", " · ".join(facts), ""]
    lines += [f"Warning `{notice.code}`: {notice.message}\n" for notice in context.warnings]
    for section in SECTIONS:
        ids = context.sections[section]
        lines.append(f"**{section}** ({context.tokens[section]} tokens)" + ("" if ids else ": none"))
        lines += ["", *(_line(memories[one], one in context.sticky) for one in ids), ""]
    return "\n".join(lines)


def _line(entry: str, sticky: bool) -> str:
    text = re.sub(r"\s+", " ", entry).replace("|", "\\|").replace("`", "'")
    text = text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS].rstrip()} \u2026"
    return f"- {text}" + (" **(sticky)**" * sticky)


async def render_page(bootstrap: str, requests: Sequence[Json]) -> str:
    """Return the whole page."""
    chapters = [render_chapter(number, one, await assemble(bootstrap, one)) for number, one in enumerate(requests, 1)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([PAGE, *chapters]))


def main() -> None:
    """Print the page, from a running service."""
    parser = argparse.ArgumentParser(prog="python -m bench.contexts", description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    options = parser.parse_args()
    sys.stdout.write(asyncio.run(render_page(options.bootstrap, json.loads(REQUESTS.read_text()))))


if __name__ == "__main__":
    main()
