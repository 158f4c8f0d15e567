"""The demo: publishes a conversation of two people and asks for what they said.

A running service enters, by its broker's address; lines for a person leave, and an exit code. The turns have fixed
ids, so that a second run finds all of them known and changes nothing.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from streams.client import Answer, MemoryClient, MemoryClientError
from streams.demo_page import answer_lines, question_lines

USER = "demo"
"""The user whose memories these are; nothing of anybody else is touched."""

CONVERSATION = Path(__file__).with_name("demo_conversation.json")
"""`turns` with the fields of `MemoryClient.remember`, in the order of publishing; `questions` with those of `retrieve`
and the turn that each is expected to find."""

TOP_K = 3
"""Hits shown for a question: what fits a screen."""

PATIENCE_S = 30.0
"""How long one call may take: the very first one may meet a worker that is just starting."""

EMBEDDING_S = 60.0
"""How long to wait for the vectors. Ten would do on a slow laptop; without them the questions go by words."""

POLL_S = 0.25
"""Between two looks at the progress of the embedding."""

Tell = Callable[[str], None]
Json = dict[str, Any]


async def run_demo(bootstrap: str, tell: Tell, topic_prefix: str = "memory.") -> int:
    """Run the demo against the service on this broker; `tell` prints one line.

    Returns 0, or 1 when a question found nothing or the service did not answer.
    """
    script = json.loads(CONVERSATION.read_text(encoding="utf-8"))
    try:
        async with MemoryClient(bootstrap, user_id=USER, topic_prefix=topic_prefix, timeout=PATIENCE_S) as memory:
            await _publish(memory, script["turns"], tell)
            await _embedded(memory, tell)
            answers = [await _ask(memory, n, question, tell) for n, question in enumerate(script["questions"], 1)]
    except MemoryClientError as failure:
        tell(f"The demo can't go on: {failure}")
        return 1
    return 0 if all(answer.hits for answer in answers) else 1


async def _publish(memory: MemoryClient, turns: Sequence[Json], tell: Tell) -> None:
    ids = {turn["turn_id"] for turn in turns}
    tell(f"Publishing {len(ids)} turns of a conversation between {_names(turns)}; {len(turns) - len(ids)} is edited.")
    began = time.perf_counter()
    new: set[str] = set()
    for turn in turns:
        remembered = await memory.remember(**turn)
        # An edit has version 2 from its first time on; in a second run its first text comes back with version 2, too.
        if not remembered.duplicate and remembered.version == 1:
            new.add(turn["turn_id"])
    known = len(ids) - len(new)
    tell(f"Accepted in {time.perf_counter() - began:.1f} s: {len(new)} new, {known} known from an earlier run.")


async def _embedded(memory: MemoryClient, tell: Tell) -> None:
    until, told = time.monotonic() + EMBEDDING_S, None
    while (pending := await _pending(memory)) and time.monotonic() < until:
        if pending != told:
            tell(f"Embedding: {pending} memories to go.")
            told = pending
        await asyncio.sleep(POLL_S)
    tell(f"{pending} memories have no vector yet; they are found by their words." if pending else "All are embedded.")


async def _pending(memory: MemoryClient) -> int:
    health = await memory.command("health")
    return int(health["modes"]["general"]["pending"])


async def _ask(memory: MemoryClient, number: int, question: Json, tell: Tell) -> Answer:
    query, projects, since = question["query"], question["projects"], question.get("since")
    for line in question_lines(number, query, _limits(projects, since)):
        tell(line)
    began = time.perf_counter()
    answer = await memory.retrieve(query, projects=projects, since=since, top_k=TOP_K)
    for line in answer_lines(answer, 1000 * (time.perf_counter() - began)):
        tell(line)
    return answer


def _limits(projects: str, since: str | None) -> str:
    limits = [] if projects == "*" else [f"project {projects}"]
    return ", ".join([*limits, *([f"since {since[:10]}"] if since else [])])


def _names(turns: Sequence[Json]) -> str:
    return " and ".join(dict.fromkeys(turn["speaker"] for turn in turns))
