"""The demo's queries: memories, in one mode and across modes, and a prompt."""

import time
from typing import Any

from schemas.memories import Evidence
from schemas.retrieval import Hit
from streams.client import Answer, MemoryClient
from streams.demo.page import answer_lines, context_lines, question_lines
from streams.demo.publishing import PrintLine

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
