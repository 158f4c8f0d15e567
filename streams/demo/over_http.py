"""The demo's end: the same memories over HTTP, asked by the same client with another connection."""

import json
import time

from modestream_client import HttpMemoryClient

from streams.demo.page import answer_lines, http_lines
from streams.demo.publishing import Json, PrintLine

TOP_K = 1
"""Hits: the answer is the one that was shown over Kafka."""


async def ask_over_http(url: str, user_id: str, question: Json, timeout_s: float, print_line: PrintLine) -> bool:
    """Print a question as a `curl` command, and its best hit; return False if nothing was found."""
    body = {"query": question["query"], "project_id": question["projects"], "top_k": TOP_K}
    for line in http_lines(url, user_id, json.dumps(body, ensure_ascii=False)):
        print_line(line)
    async with HttpMemoryClient(url, user_id=user_id, timeout=timeout_s) as memory:
        began = time.perf_counter()
        answer = await memory.retrieve(question["query"], projects=question["projects"], top_k=TOP_K)
        took_ms = 1000 * (time.perf_counter() - began)
    for line in answer_lines(answer, took_ms, {}):
        print_line(line)
    return bool(answer.hits)
