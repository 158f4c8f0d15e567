"""Format answers for a terminal of 100 columns. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from modestream_client import Answer, Context, Notice
from modestream_client.hits import Evidence, Hit

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
    yield f"{outcome}, {_how(answer)} in mode {', '.join(answer.modes)}, {took_ms:.1f} ms round trip"
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
    command = f"  make up DATA_DIR={data_dir}"
    address = "  then open http://127.0.0.1:8080/admin, or the address of its ready line"
    return ["", RULE, "In a browser, with the map of these memories:", command, address]


def hit_lines(rank: int, hit: Hit, quotes: Mapping[Evidence, str]) -> Iterator[str]:
    """Yield the lines of a hit: score, speaker, time; text; quotes of its resources; origin."""
    yield f"{rank:3}.  {hit.score:.2f}  {hit.speaker or hit.role or 'distilled'}, {_when(hit.occurred_at)}"
    yield from _wrapped(f"“{hit.text}”")
    for evidence in hit.evidence:
        if evidence in quotes:
            yield from _wrapped(f"{evidence.resource}: “{quotes[evidence]}”")
    yield from _wrapped(_origin(hit))


def _origin(hit: Hit) -> str:
    version = f", version {hit.version}" if hit.version > 1 else ""
    evidence = "; ".join(_span(span) for span in hit.evidence)
    where = f"mode {hit.mode}, project {hit.scope.get('project_id')}, conversation {hit.conversation_id}{version}"
    return f"from {evidence} in {where}" if evidence else f"from {where}"


def _how(answer: Answer) -> str:
    method = answer.diagnostics.get("method")
    return f"{answer.strategy} search" + (f" by {method}" if answer.strategy == "cross_mode" and method else "")


def _span(evidence: Evidence) -> str:
    resource = f" of {evidence.resource}" if evidence.resource else ""
    return f"turn {evidence.turn_id}, characters {evidence.start} to {evidence.end}{resource}"


def _when(moment: str) -> str:
    time = datetime.fromisoformat(moment)
    return f"{time:%a} {time.day} {time:%b %Y, %H:%M %Z}".strip()


def _warnings(warnings: Sequence[Notice]) -> Iterator[str]:
    for warning in warnings:
        yield from _plain(f"warning {warning.code}: {warning.message}")


def _plain(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False)
