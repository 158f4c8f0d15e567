"""Ask: the hits of a question with explanations, the hits of each mode, and the question as a prompt."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from modestream_client.calls.answering import in_pieces
from modestream_client.contexts import SECTIONS
from modestream_client.operations import ASSEMBLE_CONTEXT, SEARCH_MEMORIES
from modestream_client.vocabulary import DEFAULT_BUDGET_TOKENS
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from gateway.pages.charts import RowBar, signed_bars, stacked_bars
from gateway.pages.formats import ROLES, json_text
from gateway.pages.live import UNBUFFERED, as_event
from gateway.pages.pages import Pages
from gateway.pages.requests import PAGES, View
from gateway.pages.texts import excerpt, pieces_of
from gateway.service.calls import Json, Refused
from schemas.scopes import ANY_VALUE

SHOWN = ("hits", "modes", "context")

TOP_K = 10
BESIDE_TOP_K = 5
"""Hits of each mode where several stand side by side."""

MAX_BESIDE = 8
"""Modes side by side: those with most memories."""

MAX_DROPPED = 10
"""Left-out memories that are shown with their text."""

AROUND_PASSAGE_CHARS = 120
"""Characters shown before and after the best passage of a long text: a sentence or two."""

LIKELY = 0.15
"""Probability from which a hit is shown; less likely ones are folded."""

AS_A_CLIENT = "~client"
"""The choice "a client's default mode"; no mode has this name."""

ANSWER_WAIT_S = 60.0

CONTEXT_WAIT_S = 30.0
"""Timeout of a prompt: with many rules, on a busy machine, it takes the longest of all pages."""

COMMON_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "about",
        "did",
        "does",
        "do",
        "for",
        "from",
        "had",
        "has",
        "have",
        "her",
        "his",
        "how",
        "into",
        "its",
        "not",
        "our",
        "she",
        "that",
        "the",
        "their",
        "them",
        "then",
        "they",
        "this",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
"""Words of questions that are not marked in hits."""

BEGINNING = "where every memory begins"
"""The ground that is the same for all hits."""

MATTERS = 0.1
"""Log-odds from which a ground is named in words: below, it moves a score by at most 2.5 points of 100."""

MAX_GROUNDS = 3
"""Grounds named in words for a hit, and against it."""

TITLES = {
    "rules": "Rules and safety",
    "task_state": "State of the task",
    "recent_window": "Recent turns",
    "retrieved_evidence": "Found for the question",
    "relevant_decisions": "Decisions",
    "capsules": "Summaries",
    "frame": "Instructions and frame",
}


class Entry(NamedTuple):
    """A memory of a section, as the prompt has it."""

    memory_id: str
    text: str
    is_sticky: bool


class SectionShown(NamedTuple):
    """A section with its planned and used tokens."""

    name: str
    title: str
    budget: int
    tokens: int
    entries: Sequence[Entry]


def ask_pages(pages: Pages) -> Sequence[BaseRoute]:
    asked = Questions(pages)

    async def show(request: Request) -> Response:
        view = pages.view(request)
        shown = view.query.get("show", SHOWN[0])
        shown = shown if shown in SHOWN else SHOWN[0]
        values: Json = {
            "shown": shown,
            "query": view.query.get("q", "").strip(),
            "chosen": _chosen(view),
            "roles": ROLES,
        }
        if values["query"]:
            values |= await {"hits": asked.hits, "modes": asked.modes, "context": asked.context}[shown](view)
        return await pages.render(view, "ask.html", "Ask", "ask", client=AS_A_CLIENT, **values)

    async def answer(request: Request) -> Response:
        return StreamingResponse(
            asked.streamed_answer(pages.view(request)), media_type="text/event-stream", headers=UNBUFFERED
        )

    return [Route(f"{PAGES}/ask", show), Route(f"{PAGES}/ask/answer", answer)]


class Questions:
    """Answers the question of an address for each tab."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._service = pages.service

    async def hits(self, view: View) -> Json:
        """Search where the address says; each hit has its contributions. A model, if there is one, answers above."""
        fields = {**_question(view), "mode": _mode(view), "top_k": _number(view, "top_k", TOP_K), "explain": True}
        searched = self._service.operations.run(SEARCH_MEMORIES, view.call(), view.read_scope, fields)
        answer, state = await asyncio.gather(searched, self._pages.state(view))
        words = matched_words(fields["query"])
        hits = []
        for hit in answer["hits"]:
            contributions = hit.get("contributions") or {}
            grounds = {name: value for name, value in contributions.items() if abs(value) >= MATTERS}
            grounds.pop(BEGINNING, None)
            for_it = [name for name, value in grounds.items() if value > 0][:MAX_GROUNDS]
            against_it = [name for name, value in grounds.items() if value < 0][:MAX_GROUNDS]
            bars = signed_bars(contributions)
            hits.append({**_cut(hit, words), "bars": bars, "for_it": for_it, "against_it": against_it})
        likely = [hit for hit in hits if hit["score"] >= LIKELY]
        has_model = isinstance(state.get("language_model"), dict)
        told = [told async for told in self._answers(view)][-1] if has_model and view.query.get("answer") else None
        return {
            "answer": answer,
            "likely": likely,
            "unlikely": [hit for hit in hits if hit["score"] < LIKELY],
            "has_model": has_model,
            "told": told,
            "sent": _body(view, fields),
        }

    async def streamed_answer(self, view: View) -> AsyncIterator[str]:
        """Yield a model's answer as events of the part that shows it, each with all of the text so far."""
        async for told in self._answers(view):
            yield as_event(self._pages.text(view, "parts/answer.html", told=told))
        yield "event: done\ndata:\n\n"

    async def _answers(self, view: View) -> AsyncIterator[Json]:
        """Yield the answer again and again, as it grows; the last one has references."""
        fields = {**_question(view), "mode": _mode(view), "store": False}
        asking = partial(self._service.operations.answer, view.call(ANSWER_WAIT_S), view.read_scope, fields)
        text = ""
        try:
            async for piece in in_pieces(asking, itemgetter("text")):
                if isinstance(piece, str):
                    text += piece
                    yield {"pieces": cited(text, ()), "references": (), "is_done": False}
                else:
                    references = piece["references"]
                    yield {
                        "pieces": cited(piece["text"], references),
                        "references": references,
                        "context_id": piece.get("context_id"),
                        "is_done": True,
                    }
        except Refused as refused:
            yield {"pieces": cited(text, ()), "references": (), "is_done": True, "refused": refused}

    async def modes(self, view: View) -> Json:
        """Search in each mode separately: scores of different spaces can't be compared."""
        boundary = await self._service.users.boundary(view.call()) or {}
        counts = {name: int(mode["memories"]) for name, mode in boundary.get("modes", {}).items()}
        names = sorted((name for name, count in counts.items() if count), key=lambda name: -counts[name])[:MAX_BESIDE]
        fields = {**_question(view), "top_k": BESIDE_TOP_K}
        words = matched_words(fields["query"])
        call = view.call()
        answers = await asyncio.gather(
            *(
                self._service.operations.run(SEARCH_MEMORIES, call, view.read_scope, {**fields, "mode": name})
                for name in names
            )
        )
        hits = [[_cut(hit, words) for hit in answer["hits"]] for answer in answers]
        columns = [{"mode": name, "hits": of_mode} for name, of_mode in zip(names, hits, strict=True)]
        # The mode with the best hit first: the last columns lie beyond the edge of a narrow window.
        columns.sort(key=lambda column: -max((hit["score"] for hit in column["hits"]), default=0.0))
        return {"columns": columns}

    async def context(self, view: View) -> Json:
        """Assemble a prompt, with its tokens by section."""
        budget = _number(view, "budget", DEFAULT_BUDGET_TOKENS)
        mode = _mode(view)
        fields = {**_question(view), "mode": None if mode == ANY_VALUE else mode, "budget_tokens": budget}
        if conversation := view.query.get("conversation_id"):
            fields["conversation_id"] = conversation
        call = view.call(CONTEXT_WAIT_S)
        context = await self._service.operations.run(ASSEMBLE_CONTEXT, call, view.read_scope, fields)
        left_out = await asyncio.gather(
            *(self._text(view, memory_id) for memory_id in context["dropped"][:MAX_DROPPED])
        )
        packed = PackedContext(context, budget)
        return {
            "answer": context,
            "packed": packed,
            "left_out": left_out,
            "sent": _body(view, fields),
            "budget": budget,
        }

    async def _text(self, view: View, memory_id: str) -> Json:
        try:
            return await self._service.memories.get(view.call(), view.read_scope, memory_id)
        except Refused:
            return {"memory_id": memory_id, "text": "This memory has been forgotten meanwhile.", "mode": None}


class PackedContext:
    """An answer of `assemble.v1`, taken apart by section."""

    def __init__(self, context: Json, budget_tokens: int) -> None:
        self.total = int(context["tokens"]["total"])
        self.budget = budget_tokens
        self.sections: list[SectionShown] = []
        lines = _lines_of(context)
        for name in SECTIONS:
            memory_ids = context["sections"].get(name, ())
            entries = [Entry(each, lines.get(each, ""), each in context["sticky"]) for each in memory_ids]
            budget, tokens = int(context["budget"].get(name, 0)), int(context["tokens"].get(name, 0))
            self.sections.append(SectionShown(name, TITLES[name], budget, tokens, entries))

    @property
    def bars(self) -> list[RowBar]:
        """The tokens of all sections, and of the frame around them, as shares of the budget."""
        used = [(section.name, float(section.tokens)) for section in self.sections if section.tokens]
        frame = self.total - sum(section.tokens for section in self.sections)
        return stacked_bars([*used, ("frame", float(max(0, frame)))], float(max(self.budget, self.total)))

    def title(self, name: str) -> str:
        return TITLES[name]


def _cut(hit: Json, words: re.Pattern[str] | None) -> Json:
    """Return a hit with words of the question marked; a long text is cut around its best passage, which is marked."""
    if not (passages := hit.get("passages")):
        spans = [] if words is None else [found.span() for found in words.finditer(hit["text"])]
        return {**hit, "excerpt": pieces_of(hit["text"], spans)}
    whole = pieces_of(hit["text"], [(passages[0]["start"], passages[0]["end"])])
    return {**hit, "excerpt": excerpt(whole, AROUND_PASSAGE_CHARS), "whole": whole}


def matched_words(query: str) -> re.Pattern[str] | None:
    """Return a pattern of the words that answer a question, with their endings; None if it has none.

    >>> matched_words("Where does the cat sleep?").findall("The cats are sleeping.")
    ['cats', 'sleeping']
    """
    words = [word for word in re.findall(r"\w{3,}", query.lower()) if word not in COMMON_WORDS]
    stems = sorted({re.escape(word[: max(3, len(word) - 1)] if len(word) > 4 else word) for word in words}, key=len)
    return re.compile(rf"\b(?:{'|'.join(reversed(stems))})\w{{0,4}}\b", re.IGNORECASE) if stems else None


def cited(text: str, references: Sequence[str]) -> list[tuple[str, str | None]]:
    """Cut an answer at its references; each piece has the memory that it names, or None.

    >>> cited("On Friday [1].", ["m1"])
    [('On Friday ', None), ('[1]', 'm1'), ('.', None)]
    """
    pieces: list[tuple[str, str | None]] = []
    for piece in re.split(r"(\[\d{1,3}\])", text):
        number = int(piece[1:-1]) if re.fullmatch(r"\[\d{1,3}\]", piece) else 0
        if piece:
            pieces.append((piece, references[number - 1] if 0 < number <= len(references) else None))
    return pieces


def _chosen(view: View) -> str:
    """Return where to search: a mode, all of them together, or where a client that names none would."""
    return view.query.get("in") or view.mode or ANY_VALUE


def _mode(view: View) -> str | None:
    chosen = _chosen(view)
    return None if chosen == AS_A_CLIENT else chosen


def _question(view: View) -> dict[str, Any]:
    named: dict[str, Any] = {
        name: f"{view.query[name][:10]}T00:00:00Z" for name in ("since", "until") if view.query.get(name)
    }
    filters = {name: view.query[name] for name in ("speaker", "role") if view.query.get(name)}
    if (conversation := view.query.get("conversation_id")) and view.query.get("show") != "context":
        filters["conversation_id"] = conversation
    return {"query": view.query["q"].strip(), **named, **({"filters": filters} if filters else {})}


def _number(view: View, name: str, default: int) -> int:
    text = view.query.get(name) or str(default)
    if not text.isdecimal() or len(text) > 9:
        raise Refused("invalid_value", "enter a whole number", name)
    return int(text)


def _body(view: View, fields: Json) -> str:
    """Return the body of the same request over HTTP, in which fields of None are left out."""
    named = {name: value for name, value in fields.items() if value is not None}
    return json_text({**view.read_scope, **named})


def _lines_of(context: Json) -> dict[str, str]:
    """Return the lines of a compact context by memory: `[n]` is the position in the references, from 1."""
    references, text_of = context["references"], dict[str, str]()
    for day, lines in _memories_in(context["messages"]).items():
        for line in lines:
            number, _, text = line.removeprefix("[").partition("] ")
            if number.isdecimal() and 0 < int(number) <= len(references):
                text_of[references[int(number) - 1]] = f"{day} {text}"
    return text_of


def _memories_in(messages: Sequence[Json]) -> dict[str, list[str]]:
    """Return the memories' lines by day, which one of the user messages has; empty for a context without memories."""
    for message in messages:
        start = message["content"].find('{"about"')
        if message["role"] != "user" or start < 0:
            continue
        try:
            content, _ = json.JSONDecoder().raw_decode(message["content"], start)
        except ValueError:
            continue
        if isinstance(memories := content.get("memories"), dict):
            return memories
    return {}
