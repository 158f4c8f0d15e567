"""Records that a memory is related to: sources with evidence, extracted items, predecessors and successors.

Of an edited turn also its versions: their texts, as far as the log of turns still has them, with the changed words.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from markupsafe import Markup, escape
from modestream_client.operations import SEARCH_MEMORIES

from gateway.pages.formats import clock
from gateway.pages.texts import Piece, excerpt, pieces_of
from gateway.service.calls import Call, Refused
from gateway.service.memories import MAX_FORMER_TEXTS
from gateway.service.service import MemoryService

Record = dict[str, Any]

MAX_SOURCES = 20
"""Turns whose evidence one page shows."""

MAX_ITEMS = 40
"""Extracted memories that one page shows: a turn has at most 144."""

MAX_CHAIN = 10

MAX_CANDIDATES = 20
"""Superseded memories that are loaded to find those that this one replaced."""

SEARCHED = 100
"""Hits that are compared: the contract's limit."""

QUERY_CHARS = 2_000
"""Characters of a text with which similar memories are searched."""

SIMILAR = 10
"""Similar memories that a page shows."""

RECORDS_AT_ONCE = 8

WORDS = re.compile(r"\s+|\S+\s*")
"""A word with the white space after it: spaces by themselves would match everywhere."""


@dataclass(frozen=True)
class Source:
    """A turn, or one of its resources, with the evidence in it."""

    turn: Record
    resource: str | None
    pieces: list[Piece]
    place: str = ""
    """The resource, and the page or second of a part of a file."""
    span: Mapping[str, Any] | None = None
    """The evidence in a file that was read: its page shows it."""


@dataclass(frozen=True)
class Relations:
    """Related records, each kind bounded.

    `left_out` counts the sources and items beyond the bounds. `replaced` are oldest first. `successors` begin with the
    next one. `text` is the memory's own, with the evidence of its items marked.
    """

    sources: list[Source]
    items: list[Record]
    left_out: int
    successors: list[Record]
    replaced: list[Record]
    text: list[Piece]


async def relations_of(service: MemoryService, call: Call, record: Record) -> Relations:
    """Load the related records. Raises Refused."""
    scope = service.boundary_fields.others(record["scope"])
    turn_ids = list(dict.fromkeys(span["memory_id"] for span in record["evidence"] if span.get("memory_id")))
    item_ids = record.get("items", [])
    loaded_turns, loaded_items, successors, similar = await asyncio.gather(
        get_all(service, call, [(scope, turn_id) for turn_id in turn_ids[:MAX_SOURCES]]),
        get_all(service, call, [(scope, item_id) for item_id in item_ids[:MAX_ITEMS]]),
        _successors(service, call, record),
        _superseded_similar(service, call, record),
    )
    turns, items = [turn for turn in loaded_turns if turn], [item for item in loaded_items if item]
    own_spans = _spans(record["memory_id"], None, (span for item in items for span in item["evidence"]))
    return Relations(
        sources=[source for turn in turns for source in _sources(turn, record["evidence"], record["text"])],
        items=items,
        left_out=max(0, len(turn_ids) - MAX_SOURCES) + max(0, len(item_ids) - MAX_ITEMS),
        successors=successors,
        replaced=_leading_to(record["memory_id"], [*turns, *similar]),
        text=pieces_of(record["text"], own_spans),
    )


async def similar_to(service: MemoryService, call: Call, record: Record, *, superseded: bool = False) -> list[Record]:
    """Search for the text in the same mode; return the hits except the memory itself, best first. Raises Refused."""
    fields: dict[str, Any] = {
        "query": record["text"][:QUERY_CHARS],
        "mode": record["mode"],
        "top_k": SEARCHED,
        "include_superseded": superseded,
    }
    if record["origin"] == "extracted":
        fields["types"] = [record["type"]]
    scope = service.boundary_fields.others(record["scope"])
    answer = await service.operations.run(SEARCH_MEMORIES, call, scope, fields)
    return [hit for hit in answer["hits"] if hit["memory_id"] != record["memory_id"]]


async def get_all(
    service: MemoryService, call: Call, scopes_and_ids: Sequence[tuple[Mapping[str, str], str]]
) -> list[Record | None]:
    """Return records in order, a few at a time; None for a forgotten one. Raises Refused for any other failure.

    The scopes are without the user.
    """
    slots = asyncio.Semaphore(RECORDS_AT_ONCE)

    async def get(scope: Mapping[str, str], memory_id: str) -> Record | None:
        async with slots:
            return await _get_or_none(service, call, scope, memory_id)

    return await asyncio.gather(*(get(scope, memory_id) for scope, memory_id in scopes_and_ids))


@dataclass(frozen=True)
class Version:
    """One version. `text` is None where the log has it no longer; `shown` marks the changes since the one before."""

    number: int
    first_seen: str
    is_current: bool
    text: str | None
    shown: Markup | None


@dataclass(frozen=True)
class Versions:
    """Versions, the latest first. `is_read` is False while the log can't be read: then only the current has a text."""

    items: list[Version]
    left_out: int
    is_read: bool


async def versions_of(service: MemoryService, call: Call, record: Record) -> Versions | None:
    """Return the versions of a turn; None for a memory that has had one text only."""
    listed = record["versions"][-MAX_FORMER_TEXTS:]
    if len(listed) < 2:
        return None
    try:
        texts, is_read = await service.memories.former_texts(call, record), True
    except Refused:
        # The rest of the page is worth showing without them.
        texts, is_read = {}, False
    items: list[Version] = []
    before: str | None = None
    for version in listed:
        text = record["text"] if version["current"] else texts.get(version["text_hash"])
        shown = None
        if text is not None:
            shown = escape(text) if before is None else changed_words(before, text)
        items.append(Version(version["version"], version["first_seen"], version["current"], text, shown))
        before = text
    return Versions(items[::-1], listed[0]["version"] - 1, is_read)


def changed_words(before: str, after: str) -> Markup:
    """Return a text with the words that were deleted and inserted since another one.

    >>> str(changed_words("we moved to Leeds", "we moved to Kent"))
    'we moved to <del>Leeds</del><ins>Kent</ins>'
    """
    old, new = WORDS.findall(before), WORDS.findall(after)
    shown = Markup("")
    for change, i, j, k, m in SequenceMatcher(None, old, new).get_opcodes():
        if change == "equal":
            shown += "".join(new[k:m])
            continue
        if i < j:
            shown += Markup("<del>{}</del>").format("".join(old[i:j]))
        if k < m:
            shown += Markup("<ins>{}</ins>").format("".join(new[k:m]))
    return shown


async def _get_or_none(service: MemoryService, call: Call, scope: Mapping[str, str], memory_id: str) -> Record | None:
    try:
        return await service.memories.get(call, dict(scope), memory_id)
    except Refused as refused:
        if refused.code in ("not_found", "not_allowed"):
            return None
        raise


async def _superseded_similar(service: MemoryService, call: Call, record: Record) -> list[Record]:
    """Return superseded items similar to an item, among which are those that it replaced.

    No list is by successor, but an item claims the same of the same subject as the one that it replaced.
    """
    if record["origin"] != "extracted":
        return []
    try:
        all_hits, current_hits = await asyncio.gather(
            similar_to(service, call, record, superseded=True), similar_to(service, call, record)
        )
    except Refused:
        # The rest of the page is worth showing without them.
        return []
    current_ids = {hit["memory_id"] for hit in current_hits}
    ids = [hit["memory_id"] for hit in all_hits if hit["memory_id"] not in current_ids][:MAX_CANDIDATES]
    scope = service.boundary_fields.others(record["scope"])
    return [item for item in await get_all(service, call, [(scope, memory_id) for memory_id in ids]) if item]


async def _successors(service: MemoryService, call: Call, record: Record) -> list[Record]:
    """Return the memory that replaced this one, the one that replaced that, and so on."""
    scope = service.boundary_fields.others(record["scope"])
    chain: list[Record] = []
    current: Record | None = record
    while current and current["superseded_by"] and len(chain) < MAX_CHAIN:
        current = await _get_or_none(service, call, scope, current["superseded_by"])
        if current is not None:
            chain.append(current)
    return chain


def _leading_to(memory_id: str, candidates: Sequence[Record]) -> list[Record]:
    """Return the records that a memory replaced, directly or by way of others, the earliest first."""
    chain: dict[str, Record] = {}
    successors = {memory_id}
    while successors:
        replaced = [
            record
            for record in candidates
            if record["superseded_by"] in successors and record["memory_id"] not in chain
        ]
        replaced.sort(key=lambda record: str(record["occurred_at"]), reverse=True)
        chain |= {record["memory_id"]: record for record in replaced}
        successors = {record["memory_id"] for record in replaced}
    return list(reversed(chain.values()))


def _sources(turn: Record, evidence: Sequence[Mapping[str, Any]], text: str) -> list[Source]:
    """Return excerpts of a turn's text and of its resources, where they have evidence.

    The text of a file is not stored as a whole: a part of it is shown by the memory's own `text`.
    """
    sources = []
    resources = {resource["uri"]: resource for resource in turn["resources"]}
    for uri in (None, *resources):
        if not (spans := _spans(turn["memory_id"], uri, evidence)):
            continue
        whole = turn["text"] if uri is None else resources[uri].get("text")
        pieces = pieces_of(text, [(0, len(text))]) if whole is None else excerpt(pieces_of(whole, spans))
        place = "" if uri is None else _place(resources[uri], evidence)
        is_read = uri is not None and resources[uri].get("status") == "ready"
        span = next((span for span in evidence if span.get("resource") == uri), None) if is_read else None
        sources.append(Source(turn, uri, pieces, place, span and {"page": None, **span}))
    return sources


def _place(resource: Record, evidence: Iterable[Mapping[str, Any]]) -> str:
    """Return the name of a resource with the page or the second of the evidence in it."""
    name = str(resource.get("name") or resource["uri"])
    for span in evidence:
        if span.get("resource") == resource["uri"] and span.get("page") is not None:
            return f"{name}, p. {span['page']}"
        if span.get("resource") == resource["uri"] and span.get("start_s") is not None:
            return f"{name}, {clock(span['start_s'])}"
    return name


def _spans(memory_id: str, resource: str | None, evidence: Iterable[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [
        (span["start"], span["end"])
        for span in evidence
        if span.get("memory_id") == memory_id and span.get("resource") == resource
    ]
