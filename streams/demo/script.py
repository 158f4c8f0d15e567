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

from schemas.memories import Evidence
from schemas.retrieval import Hit
from streams.client import Answer, MemoryClient, MemoryClientError
from streams.demo.page import answer_lines, question_lines

USER = "demo"
"""The user whose memories these are; nothing of anybody else is touched."""

CONVERSATION = Path(__file__).with_name("conversation.json")
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
    while (counts := await _counts(memory))["pending"] and time.monotonic() < until:
        if counts != told:
            tell(f"Embedding: {counts['ready']} of {counts['eligible']} done.")
            told = counts
        await asyncio.sleep(POLL_S)
    missing = counts["pending"]
    tell(f"{missing} without a vector yet; they are found by their words." if missing else "All are embedded.")


async def _counts(memory: MemoryClient) -> dict[str, int]:
    health = await memory.command("health")
    counts: dict[str, int] = health["modes"]["general"]
    return {name: counts[name] for name in ("eligible", "pending", "ready")}


async def _ask(memory: MemoryClient, number: int, question: Json, tell: Tell) -> Answer:
    query, projects, since = question["query"], question["projects"], question.get("since")
    for line in question_lines(number, query, _limits(projects, since)):
        tell(line)
    began = time.perf_counter()
    answer = await memory.retrieve(query, projects=projects, since=since, top_k=TOP_K)
    took_ms = 1000 * (time.perf_counter() - began)
    for line in answer_lines(answer, took_ms, await _quotes(memory, answer)):
        tell(line)
    return answer


async def _quotes(memory: MemoryClient, answer: Answer) -> dict[Evidence, str]:
    return {
        evidence: await _quote(memory, hit, evidence)
        for hit in answer.hits
        for evidence in hit.evidence
        if evidence.resource
    }


async def _quote(memory: MemoryClient, hit: Hit, evidence: Evidence) -> str:
    whole = await memory.command("get_memory", {"memory_id": hit.memory_id}, project_id=hit.scope["project_id"])
    texts = {resource["uri"]: str(resource["text"]) for resource in whole["resources"]}
    return texts[evidence.resource or ""][evidence.start : evidence.end]


def _limits(projects: str, since: str | None) -> str:
    limits = [] if projects == "*" else [f"project {projects}"]
    return ", ".join([*limits, *([f"since {since[:10]}"] if since else [])])


def _names(turns: Sequence[Json]) -> str:
    return " and ".join(dict.fromkeys(turn["speaker"] for turn in turns))
