"""The demo's script against a running service: declare a mode, publish a conversation, run queries, assemble a prompt.

The turns have fixed ids, so that a second run finds all of them known and changes nothing.
"""

import json
import time
from pathlib import Path
from typing import Any

from modestream_client import Answer, MemoryClient, MemoryClientError
from modestream_client.hits import Evidence, Hit

from streams.demo.over_http import ask_over_http
from streams.demo.page import answer_lines, context_lines, question_lines
from streams.demo.publishing import PrintLine, correct_modes, declare_modes, publish_turns, wait_until_embedded

TOP_K = 2
"""Hits of a query: all queries together fit two screens."""

Json = dict[str, Any]


async def run_query(memory: MemoryClient, number: int, question: Json, print_line: PrintLine) -> Answer:
    """Run one query of the script and print its hits."""
    wanted = {name: value for name, value in question.items() if name not in ("query", "expected")}
    for line in question_lines(number, question["query"], _limits(wanted)):
        print_line(line)
    began = time.perf_counter()
    answer = await memory.retrieve(question["query"], **wanted, top_k=TOP_K)
    took_ms = 1000 * (time.perf_counter() - began)
    for line in answer_lines(answer, took_ms, await _quotes(memory, answer)):
        print_line(line)
    return answer


async def assemble_prompt(memory: MemoryClient, wanted: Json, print_line: PrintLine) -> None:
    """Assemble a prompt and print it."""
    context = await memory.assemble(**wanted)
    for line in context_lines(wanted["query"], wanted["budget_tokens"], context):
        print_line(line)


async def _quotes(memory: MemoryClient, answer: Answer) -> dict[Evidence, str]:
    return {
        evidence: await _quote(memory, hit, evidence)
        for hit in answer.hits
        for evidence in hit.evidence
        if evidence.resource
    }


async def _quote(memory: MemoryClient, hit: Hit, evidence: Evidence) -> str:
    record = await memory.command("get_memory", {"memory_id": hit.memory_id}, project_id=hit.scope["project_id"])
    texts = {resource["uri"]: str(resource["text"]) for resource in record["resources"]}
    return texts[evidence.resource or ""][evidence.start : evidence.end]


def _limits(wanted: Json) -> str:
    projects, mode, since = wanted["projects"], wanted.get("mode"), wanted.get("since")
    limits = [
        *([f"mode {mode}" if mode != "*" else "all modes"] if mode else []),
        *([f"project {projects}"] if projects != "*" else []),
        *([f"since {since[:10]}"] if since else []),
    ]
    return ", ".join(limits)


DEMO_USER_ID = "demo"
"""The user of the demo's memories; no other user's are touched."""

CONVERSATION = Path(__file__).with_name("conversation.json")
"""`modes` with the fields of `MemoryClient.declare_mode`; `turns` with those of `remember`, in the order of publishing;
`corrections`, turns with another mode than they get by default; `questions` with the fields of `retrieve` and the turn
that each is expected to find; `context` with the fields of `assemble`."""

CALL_TIMEOUT_S = 30.0
"""Limit of one call: the first one may reach a worker that is still starting."""


async def run_demo(
    bootstrap: str, print_line: PrintLine, topic_prefix: str = "memory.", *, url: str | None = None
) -> int:
    """Run the demo against the service on this broker, and its end against the gateway at `url`.

    Return 0, or 1 if a query found nothing or the service did not answer.
    """
    script = json.loads(CONVERSATION.read_text(encoding="utf-8"))
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
        found = all(answer.hits for answer in answers)
        if url is not None:
            found &= await ask_over_http(url, DEMO_USER_ID, script["questions"][0], CALL_TIMEOUT_S, print_line)
    except MemoryClientError as failure:
        print_line(f"The demo can't go on: {failure}")
        return 1
    return 0 if found else 1
