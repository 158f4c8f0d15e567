"""The demo: declare a mode, publish a conversation, run queries, assemble a prompt, and show it on 100 columns.

The turns have fixed ids, so that a second run finds all of them known and changes nothing. At its end the first
question is asked again over HTTP, by the same client with another connection.
"""

import asyncio
import os
import signal
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from modestream_client import Answer, Context, HttpMemoryClient, MemoryClient, MemoryClientError, Notice, Remembered
from modestream_client.hits import Evidence, Hit

from streams.settings import Settings
from streams.up.supervisor import ready_addresses, start_up

WIDTH = 100
"""Columns: fits half of a screen, and README code blocks."""

INDENT = " " * 11
"""The width of a hit's number and score, so that its lines align."""

RULE = "─" * WIDTH


def question_lines(number: int, query: str, limits: str) -> list[str]:
    """Return the header of a query; `limits` describes its filters and may be empty."""
    return ["", RULE, f"Question {number}: {query}" + (f"  [{limits}]" if limits else "")]


def answer_lines(answer: Answer, took_ms: float, quotes: Mapping[Evidence, str]) -> Iterator[str]:
    """Yield the lines of an answer, best hit first.

    `took_ms` is the round trip of the request; `quotes` holds the text of evidence in resources.
    """
    outcome = f"{len(answer.hits)} hit{'' if len(answer.hits) == 1 else 's'}" if answer.hits else "nothing found"
    method = answer.diagnostics.get("method")
    search = f"{answer.strategy} search" + (f" by {method}" if answer.strategy == "cross_mode" and method else "")
    yield f"{outcome}, {search} in mode {', '.join(answer.modes)}, {took_ms:.1f} ms round trip"
    yield from _warnings(answer.warnings)
    for rank, hit in enumerate(answer.hits, start=1):
        yield ""
        yield from hit_lines(rank, hit, quotes)


def context_lines(query: str, budget_tokens: int, context: Context) -> Iterator[str]:
    """Yield the lines of an assembled prompt: interaction mode, token counts, and the message with the memories."""
    memories, dropped = sum(len(ids) for ids in context.sections.values()), len(context.dropped)
    purpose = f"interaction mode {context.interaction_mode}, confidence {context.interaction_confidence:.2f}"
    usage = f"{context.tokens['total']} of {budget_tokens} tokens with {memories} memories, {dropped} dropped"
    yield from ("", RULE)
    yield from _plain(f"A prompt for: {query}")
    yield f"{purpose}; {usage}"
    yield from _warnings(context.warnings)
    yield ""
    body = next(message["content"] for message in context.messages if message["role"] == "user")
    yield from (textwrap.shorten(line, WIDTH, placeholder=" …") for line in body.splitlines())


def http_lines(url: str, user_id: str, body: str) -> list[str]:
    """Return the header of a question over HTTP: the command that asks it, and the address of all operations."""
    command = [f"curl {url}/v1/users/{user_id}/memories/search \\", "  -H 'content-type: application/json' \\"]
    return ["", RULE, f"The same over HTTP; {url}/openapi.json describes every operation.", *command, f"  -d '{body}'"]


def window_lines(data_dir: str) -> list[str]:
    """Return how these memories are seen in a browser once the demo has ended."""
    command = f"  modestream up --data-dir {data_dir}    # from a clone: make up DATA_DIR={data_dir}"
    address = "  then open http://127.0.0.1:8080/admin, or the address of its ready line"
    return ["", RULE, "In a browser, with the map of these memories:", command, address]


def hit_lines(rank: int, hit: Hit, quotes: Mapping[Evidence, str]) -> Iterator[str]:
    """Yield the lines of a hit: score, speaker, time; text; quotes of its resources; origin."""
    at = datetime.fromisoformat(hit.occurred_at)
    when = f"{at:%a} {at.day} {at:%b %Y, %H:%M %Z}".strip()
    yield f"{rank:3}.  {hit.score:.2f}  {hit.speaker or hit.role or 'distilled'}, {when}"
    yield from _wrapped(f"“{hit.text}”")
    for evidence in hit.evidence:
        if evidence in quotes:
            yield from _wrapped(f"{evidence.resource}: “{quotes[evidence]}”")
    version = f", version {hit.version}" if hit.version > 1 else ""
    spans = [
        f"turn {span.turn_id}, characters {span.start} to {span.end}"
        + (f" of {span.resource}" if span.resource else "")
        for span in hit.evidence
    ]
    where = f"mode {hit.mode}, project {hit.scope.get('project_id')}, conversation {hit.conversation_id}{version}"
    yield from _wrapped(f"from {'; '.join(spans)} in {where}" if spans else f"from {where}")


def _warnings(warnings: Sequence[Notice]) -> Iterator[str]:
    for warning in warnings:
        yield from _plain(f"warning {warning.code}: {warning.message}")


def _plain(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False)


EMBEDDING_TIMEOUT_S = 60.0
"""Limit of the wait for vectors. Ten seconds suffice on a slow laptop; without vectors the search is lexical."""

EMBEDDING_POLL_INTERVAL_S = 0.25
"""The pause between two checks of the embedding progress."""

DEMO_USER_ID = "demo"
"""The user of the demo's memories; no other user's are touched."""

CONVERSATION = Path(__file__).with_name("conversation.json")
"""`modes` with the fields of `MemoryClient.declare_mode`; `turns` with those of `remember`, in the order of publishing;
`corrections`, turns with another mode than they get by default; `questions` with the fields of `retrieve` and the turn
that each is expected to find; `context` with the fields of `assemble`."""

CALL_TIMEOUT_S = 30.0
"""Limit of one call: the first one may reach a worker that is still starting."""

TOP_K = 2
"""Hits of a query: all queries together fit two screens."""

HTTP_TOP_K = 1
"""Hits of the question over HTTP: the answer is the one that was shown over Kafka."""

PrintLine = Callable[[str], None]

Json = dict[str, Any]


async def run_demo(
    bootstrap: str, print_line: PrintLine, topic_prefix: str = "memory.", *, url: str | None = None
) -> int:
    """Run the demo against the service on this broker, and its end against the gateway at `url`.

    Return 0, or 1 if a query found nothing or the service did not answer.
    """
    script = orjson.loads(CONVERSATION.read_bytes())
    try:
        async with MemoryClient(
            bootstrap, user_id=DEMO_USER_ID, topic_prefix=topic_prefix, timeout=CALL_TIMEOUT_S
        ) as memory:
            await declare_modes(memory, script["modes"], print_line)
            accepted = await publish_turns(memory, script["turns"], print_line)
            await correct_modes(memory, script["corrections"], accepted, print_line)
            await wait_until_embedded(memory, print_line)
            answers = [
                await run_query(memory, n, question, print_line) for n, question in enumerate(script["questions"], 1)
            ]
            await assemble_prompt(memory, script["context"], print_line)
        has_hits = all(answer.hits for answer in answers)
        if url is not None:
            has_hits &= await ask_over_http(url, DEMO_USER_ID, script["questions"][0], CALL_TIMEOUT_S, print_line)
    except MemoryClientError as failure:
        print_line(f"The demo can't go on: {failure}")
        return 1
    return 0 if has_hits else 1


async def declare_modes(memory: MemoryClient, modes: Sequence[Json], print_line: PrintLine) -> None:
    """Declare modes in addition to `general`."""
    for fields in modes:
        mode = await memory.declare_mode(**fields)
        print_line(f"Declared mode {mode.name}: {mode.description} (embedder {mode.embedder}, {mode.decay} decay).")


async def publish_turns(memory: MemoryClient, turns: Sequence[Json], print_line: PrintLine) -> dict[str, Remembered]:
    """Publish turns in order, edits included; return the reply to the last text of each turn."""
    ids = {turn["turn_id"] for turn in turns}
    speakers = " and ".join(dict.fromkeys(turn["speaker"] for turn in turns))
    print_line(f"Publishing {len(ids)} turns of a conversation of {speakers}; {len(turns) - len(ids)} is edited.")
    began = time.perf_counter()
    new: set[str] = set()
    accepted: dict[str, Remembered] = {}
    for turn in turns:
        remembered = accepted[turn["turn_id"]] = await memory.remember(**turn)
        # An edit has version 2 from the start; in a second run the first text of its turn returns version 2, too.
        if not remembered.duplicate and remembered.version == 1:
            new.add(turn["turn_id"])
    known = len(ids) - len(new)
    print_line(f"Accepted in {time.perf_counter() - began:.1f} s: {len(new)} new, {known} known from an earlier run.")
    return accepted


async def correct_modes(
    memory: MemoryClient, corrections: Sequence[Json], accepted: Mapping[str, Remembered], print_line: PrintLine
) -> None:
    """Move turns to the modes that they belong to."""
    for correction in corrections:
        turn, mode = accepted[correction["turn_id"]], correction["mode"]
        record = await memory.set_memory_mode(turn.memory_id or "", mode, project_id=correction["project_id"])
        change = f"was {turn.mode} ({turn.mode_source}), is now {record.mode}"
        print_line(f"Turn {turn.turn_id} belongs to {mode}: it {change if turn.mode != mode else 'is there already'}.")


async def wait_until_embedded(memory: MemoryClient, print_line: PrintLine) -> None:
    until, printed = time.monotonic() + EMBEDDING_TIMEOUT_S, None
    while (counts := await _counts(memory))["pending"] and time.monotonic() < until:
        if counts != printed:
            print_line(f"Embedding: {counts['ready']} of {counts['eligible']} done.")
            printed = counts
        await asyncio.sleep(EMBEDDING_POLL_INTERVAL_S)
    missing = counts["pending"]
    print_line(f"{missing} have no vector yet; lexical search finds them." if missing else "All are embedded.")


async def _counts(memory: MemoryClient) -> dict[str, int]:
    modes = (await memory.command("health"))["modes"].values()
    return {name: sum(counts[name] for counts in modes) for name in ("eligible", "pending", "ready")}


async def ask_over_http(url: str, user_id: str, question: Json, timeout_s: float, print_line: PrintLine) -> bool:
    """Print a question as a `curl` command, and its best hit; return False if nothing was found."""
    body = {"query": question["query"], "project_id": question["projects"], "top_k": HTTP_TOP_K}
    for line in http_lines(url, user_id, orjson.dumps(body).decode()):
        print_line(line)
    async with HttpMemoryClient(url, user_id=user_id, timeout=timeout_s) as memory:
        began = time.perf_counter()
        answer = await memory.retrieve(question["query"], projects=question["projects"], top_k=HTTP_TOP_K)
        took_ms = 1000 * (time.perf_counter() - began)
    for line in answer_lines(answer, took_ms, {}):
        print_line(line)
    return bool(answer.hits)


async def run_query(memory: MemoryClient, number: int, question: Json, print_line: PrintLine) -> Answer:
    wanted = {name: value for name, value in question.items() if name not in ("query", "expected")}
    projects, mode, since = wanted["projects"], wanted.get("mode"), wanted.get("since")
    limits = [
        *([f"mode {mode}" if mode != "*" else "all modes"] if mode else []),
        *([f"project {projects}"] if projects != "*" else []),
        *([f"since {since[:10]}"] if since else []),
    ]
    for line in question_lines(number, question["query"], ", ".join(limits)):
        print_line(line)
    began = time.perf_counter()
    answer = await memory.retrieve(question["query"], **wanted, top_k=TOP_K)
    took_ms = 1000 * (time.perf_counter() - began)
    quotes: dict[Evidence, str] = {}
    for hit in answer.hits:
        if not any(evidence.resource for evidence in hit.evidence):
            continue
        record = await memory.command("get_memory", {"memory_id": hit.memory_id}, project_id=hit.scope["project_id"])
        texts = {resource["uri"]: str(resource["text"]) for resource in record["resources"]}
        for evidence in hit.evidence:
            if evidence.resource:
                quotes[evidence] = texts[evidence.resource][evidence.start : evidence.end]
    for line in answer_lines(answer, took_ms, quotes):
        print_line(line)
    return answer


async def assemble_prompt(memory: MemoryClient, wanted: Json, print_line: PrintLine) -> None:
    context = await memory.assemble(**wanted)
    for line in context_lines(wanted["query"], wanted["budget_tokens"], context):
        print_line(line)


SYSTEM_STOP_TIMEOUT_S = 45.0
"""Limit of a clean end: worker and broker have 20 s each."""


async def run_demo_system(data_dir: Path, settings: Settings) -> int:
    """Start the system, run the demo, stop. Return the exit code of the demo, or of a system that failed to start."""
    models = str(settings.models.absolute())
    system = await start_up(data_dir, os.environ | {"MODESTREAM_MODEL_DIR": models})
    try:
        addresses = await ready_addresses(system)
        if addresses is None:
            return await system.wait() or 1
        code = await run_demo(addresses["bootstrap"], print, settings.topic_prefix, url=addresses.get("http"))
        for line in window_lines(str(data_dir)):
            print(line)  # noqa: T201 - the demo is a program for a terminal
        return code
    finally:
        if system.returncode is None:
            system.send_signal(signal.SIGTERM)
            await asyncio.wait_for(system.wait(), SYSTEM_STOP_TIMEOUT_S)
