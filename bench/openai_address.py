"""`python -m bench.openai_address [--kills]`: what OpenAI's address adds to a provider, and what survives kills.

The provider and the address before it take turns, call by call, so that a busy machine slows both alike. With
`--kills`: calls go on while worker, broker and provider are killed in turn; then every question and answer must be
stored once, and no call may have failed but for the provider. Exit code 1 otherwise.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Self

import httpx
from aiohttp import web
from modestream_client import MemoryClient

from bench.harness.processes import cpu_seconds
from bench.harness.report import Report
from bench.harness.system import System, running
from bench.harness.texts import distinct_questions, mixed_turns

USER = "bench"

WARM = 20
"""First calls, not counted."""

RULE_WORDS = frozenset(("must", "should", "never", "always", "not", "can", "could", "will"))
"""Half of the synthetic turns have one of these, and read as a rule that every context considers; a chat has few."""

PAUSE_S = 0.3
"""Seconds after a call, in which its turns are stored and embedded: conversations have longer pauses."""

USERS, CALLERS, KILLS = 10, 8, 6
"""Of the calls under kills."""

BETWEEN_S = 0.05
"""Seconds between two events of an answer under kills: some are under way at any time."""

DOWN_S = 2.0
"""Seconds for which the provider is away."""

SETTLE_S = 120.0
"""Seconds after the last call in which all turns must be stored."""

KEY_VARIABLE = "BENCH_PROVIDER_KEY"


class StreamingProvider:
    """Answers every call at once with a few events; `url` is its address. It may be taken away and put back."""

    def __init__(self, between_s: float = 0) -> None:
        """`between_s` is the time between two events."""
        self._between_s = between_s
        self.url = ""
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.put_back()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.take_away()

    async def put_back(self) -> None:
        """Listen, at the same port again."""
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()

    async def take_away(self) -> None:
        """Break off all answers and stop listening."""
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        asked = (await request.json())["messages"][-1]["content"]
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for word in ("Answer", " to", f" {asked}"):
            await response.write(b"data: " + _event({"content": word}, None))
            await asyncio.sleep(self._between_s)
        await response.write(b"data: " + _event({}, "stop") + b"data: [DONE]\n\n")
        return response


def _event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return json.dumps({"choices": [choice]}).encode() + b"\n\n"


async def first_token_s(http: httpx.AsyncClient, url: str, question: str, user: str, **named: str) -> float:
    """Return the seconds until the first bytes of an answer; read all of it. Raises httpx.HTTPError."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": question}]}
    headers = {"x-modestream-user": user, "x-modestream-conversation": question}
    headers |= {f"x-modestream-{name}": text for name, text in named.items()}
    began = time.perf_counter()
    async with http.stream("POST", f"{url}/chat/completions", json=body, headers=headers) as answer:
        answer.raise_for_status()
        pieces = answer.aiter_bytes()
        await anext(pieces)
        seconds = time.perf_counter() - began
        text = b"".join([piece async for piece in pieces])
    if not text.endswith(b"[DONE]\n\n"):
        raise httpx.ReadError("the answer has no end")
    return seconds


async def measure(
    system: System, provider: StreamingProvider, report: Report, memories: int, calls: int, *, rules: bool
) -> None:
    """Store memories, then compare calls with and without the address."""
    turns = mixed_turns(memories, 1)
    if not rules:
        turns = [" ".join(word for word in text.split() if word.lower() not in RULE_WORDS) for text in turns]
    async with MemoryClient(system.bootstrap, timeout=60) as client, httpx.AsyncClient(timeout=60) as http:
        for text in turns:
            await client.remember(text, user_id=USER, conversation_id="earlier")
        while (await client.command("health", user_id=USER))["modes"]["general"]["pending"]:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        alone, through, contexts = list[float](), list[float](), list[float]()
        asked = (distinct_questions(turns, calls + WARM, seed) for seed in (2, 3))
        for question, other in zip(*asked, strict=True):
            alone.append(await first_token_s(http, provider.url, question, USER))
            through.append(await first_token_s(http, f"{system.url}/openai/v1", question, USER))
            await asyncio.sleep(PAUSE_S)
            began = time.perf_counter()
            body = {"query": other, "budget_tokens": 2000, "conversation_id": other}
            (await http.post(f"{system.url}/v1/users/{USER}/contexts", json=body)).raise_for_status()
            contexts.append(time.perf_counter() - began)
        # Without turns to store, and one after another: the processor time of recalling alone.
        before = cpu_seconds(system)
        for question in distinct_questions(turns, calls, 4):
            await first_token_s(http, f"{system.url}/openai/v1", question, USER, store="false", wait="60")
        spent = {part: seconds - before[part] for part, seconds in cpu_seconds(system).items()}
    alone, through, contexts = alone[WARM:], through[WARM:], contexts[WARM:]
    added = [1000 * (slow - fast) for slow, fast in zip(through, alone, strict=True)]
    report.section(f"the first token, {memories} memories, {calls} calls")
    report.number("openai_alone_ms", "the provider alone, p50", 1000 * median(alone), "ms")
    report.number("openai_through_ms", "through the address, p50", 1000 * median(through), "ms")
    report.number("openai_added_ms", "added, p50", median(added), "ms", "<= 40 ms")
    report.number("openai_added_p95_ms", "added, p95", quantiles(added, n=20)[-1], "ms")
    for part, seconds in spent.items():
        report.number(f"openai_{part}_cpu_ms", f"processor time of a call, {part}", 1000 * seconds / calls, "ms")
    report.number("openai_context_ms", "a context over HTTP, p50", 1000 * median(contexts), "ms")
    report.ratio("openai_added_to_context", "added / a context over HTTP", median(added) / 1000 / median(contexts))


async def measure_kills(system: System, provider: StreamingProvider, report: Report, calls: int) -> bool:
    """Call while parts are killed in turn; return whether all is as promised."""
    questions = [f"Question {number} about the harbour" for number in range(calls)]
    asked, failures = iter(enumerate(questions)), Counter[str]()
    limits = httpx.Limits(keepalive_expiry=2)
    async with httpx.AsyncClient(timeout=60, limits=limits) as http:

        async def call() -> None:
            for number, question in asked:
                while True:
                    try:
                        await first_token_s(http, f"{system.url}/openai/v1", question, f"{USER}-{number % USERS}")
                        break
                    except httpx.HTTPStatusError as error:
                        failures[f"{error.response.status_code}"] += 1
                    except httpx.HTTPError as error:
                        failures[type(error).__name__] += 1
                    await asyncio.sleep(0.2)

        callers = [asyncio.create_task(call()) for _ in range(CALLERS)]
        expected = 0
        for number in range(KILLS):
            await asyncio.sleep(3)
            if (part := ("worker", "broker", "provider")[number % 3]) == "provider":
                await provider.take_away()
                before = failures.total()
                await asyncio.sleep(DOWN_S)
                expected += failures.total() - before
                await provider.put_back()
            else:
                os.kill(system.pid(part), signal.SIGKILL)
        await asyncio.gather(*callers)
        wanted = Counter(text for question in questions for text in (question, f"Answer to {question}"))
        stored = await _stored(http, system.url, wanted.total())
    report.section(f"{calls} calls, {KILLS} kills of worker, broker and provider")
    report.fact("openai_failures", "calls that failed, and were made again", dict(failures))
    report.fact("openai_failed_otherwise", "of these while the provider was there", failures.total() - expected)
    report.fact("openai_lost", "turns that are missing", (wanted - stored).total())
    report.fact("openai_doubled", "turns that are stored twice", (stored - wanted).total())
    return stored == wanted


async def _stored(http: httpx.AsyncClient, url: str, wanted: int) -> Counter[str]:
    """Return the texts of all turns, once there are as many as wanted, or the time is over."""
    ends = time.perf_counter() + SETTLE_S
    while True:
        try:
            texts = Counter([text for number in range(USERS) for text in await _texts(http, url, f"{USER}-{number}")])
            if texts.total() >= wanted or time.perf_counter() > ends:
                return texts
        except httpx.HTTPError:
            if time.perf_counter() > ends:
                raise
        await asyncio.sleep(1)


async def _texts(http: httpx.AsyncClient, url: str, user: str) -> list[str]:
    texts: list[str] = []
    query: dict[str, Any] = {"types": "episodic", "limit": 500}
    while True:
        page = (await http.get(f"{url}/v1/users/{user}/memories", params=query)).raise_for_status().json()
        texts += [item["text"] for item in page["items"]]
        if page["next"] is None:
            return texts
        query["cursor"] = page["next"]


async def run(options: argparse.Namespace, report: Report) -> bool:
    """Measure in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="modestream-bench-") as directory:
        async with StreamingProvider(BETWEEN_S if options.kills else 0) as provider:
            settings = {
                "MODESTREAM_OPENAI_UPSTREAM": provider.url,
                "MODESTREAM_OPENAI_UPSTREAM_KEY_ENV": KEY_VARIABLE,
                KEY_VARIABLE: "none",
            }
            async with running(Path(directory), settings) as system:
                if options.kills:
                    return await measure_kills(system, provider, report, options.calls or 1000)
                await measure(system, provider, report, options.memories, options.calls or 150, rules=options.rules)
                return True


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.openai_address", description=__doc__)
    parser.add_argument("--memories", type=int, default=600)
    parser.add_argument("--calls", type=int, help="150, or 1,000 with kills")
    parser.add_argument("--rules", action="store_true", help="with words of rules in every turn, the worst case")
    parser.add_argument("--kills", action="store_true")
    report = Report(print)
    is_sound = asyncio.run(run(parser.parse_args(), report))
    report.print()
    sys.exit(0 if is_sound else 1)


if __name__ == "__main__":
    main()
