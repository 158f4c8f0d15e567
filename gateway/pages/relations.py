"""What a memory is related to: sources with their evidence, extracted items, what it replaced, what replaced it.

Enters: a record. Leaves: records, each kind bounded; what is not shown is counted.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modestream_client.operations import SEARCH_MEMORIES

from gateway.pages.marks import Piece, excerpt, pieces_of
from gateway.pages.records import get_all, get_or_none
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.service import MemoryService

Record = dict[str, Any]

MAX_SOURCES = 20
"""Turns whose evidence one page shows."""

MAX_ITEMS = 40
"""Extracted memories that one page shows: a turn has at most 144."""

MAX_CHAIN = 10
"""Successors that are followed."""

MAX_CANDIDATES = 20
"""Superseded memories that are looked at to find which of them this one replaced."""

SEARCHED = 100
"""Hits that are compared: the contract's limit."""

QUERY_CHARS = 2_000
"""Characters of a text that similar ones are sought by."""

SIMILAR = 10
"""Similar memories that a page shows."""


@dataclass(frozen=True)
class Source:
    """A turn, or one of its resources, with the evidence in it."""

    turn: Record
    resource: str | None
    pieces: list[Piece]


@dataclass(frozen=True)
class Relations:
    """What one page shows of them.

    `left_out` counts sources and items that are not shown. `replaced` are oldest first.
    `successors` begin with the next one. `text` is the memory's own, marked where something was extracted.
    """

    sources: list[Source]
    items: list[Record]
    left_out: int
    successors: list[Record]
    replaced: list[Record]
    text: list[Piece]


async def relations_of(service: MemoryService, call: Call, record: Record) -> Relations:
    """Load what a record is related to. Raises Refused."""
    place = service.boundary_fields.others(record["scope"])
    turn_ids = list(dict.fromkeys(one["memory_id"] for one in record["evidence"] if one.get("memory_id")))
    item_ids = record.get("items", [])
    turns, items, successors, similar = await asyncio.gather(
        get_all(service, call, [(place, one) for one in turn_ids[:MAX_SOURCES]]),
        get_all(service, call, [(place, one) for one in item_ids[:MAX_ITEMS]]),
        _successors(service, call, record),
        _superseded_similar(service, call, record) if record["origin"] == "extracted" else _nothing(),
    )
    known_turns, known_items = [one for one in turns if one], [one for one in items if one]
    replaced = _leading_to(record["memory_id"], [*known_turns, *similar])
    left_out = max(0, len(turn_ids) - MAX_SOURCES) + max(0, len(item_ids) - MAX_ITEMS)
    marked = _spans(record["memory_id"], None, (span for one in known_items for span in one["evidence"]))
    sources = [one for turn in known_turns for one in _sources(turn, record["evidence"])]
    return Relations(sources, known_items, left_out, successors, replaced, pieces_of(record["text"], marked))


async def similar_to(service: MemoryService, call: Call, record: Record, *, superseded: bool = False) -> list[Record]:
    """Return hits of the same mode for the text, without the memory itself, best first. Raises Refused."""
    fields: dict[str, Any] = {
        "query": record["text"][:QUERY_CHARS],
        "mode": record["mode"],
        "top_k": SEARCHED if record["origin"] == "extracted" else SIMILAR + 1,
        "include_superseded": superseded,
    }
    if record["origin"] == "extracted":
        fields["types"] = [record["type"]]
    found = await service.operations.run(SEARCH_MEMORIES, call, service.boundary_fields.others(record["scope"]), fields)
    return [hit for hit in found["hits"] if hit["memory_id"] != record["memory_id"]]


async def _superseded_similar(service: MemoryService, call: Call, record: Record) -> list[Record]:
    """Return superseded items that say something similar: those that a search finds with superseded ones alone.

    What an item replaced claims the same of the same subject, and no list is by successor. A search that fails costs
    the page nothing but these.
    """
    try:
        every, current = await asyncio.gather(
            similar_to(service, call, record, superseded=True), similar_to(service, call, record)
        )
    except Refused:
        return []
    known = {hit["memory_id"] for hit in current}
    ids = [hit["memory_id"] for hit in every if hit["memory_id"] not in known][:MAX_CANDIDATES]
    place = service.boundary_fields.others(record["scope"])
    return [one for one in await get_all(service, call, [(place, one) for one in ids]) if one]


async def _successors(service: MemoryService, call: Call, record: Record) -> list[Record]:
    """Return the memory that replaced this one, the one that replaced that, and so on."""
    chain: list[Record] = []
    current: Record | None = record
    while current and current["superseded_by"] and len(chain) < MAX_CHAIN:
        current = await get_or_none(
            service, call, service.boundary_fields.others(record["scope"]), current["superseded_by"]
        )
        if current is not None:
            chain.append(current)
    return chain


def _leading_to(memory_id: str, candidates: Sequence[Record]) -> list[Record]:
    """Return what a memory replaced, and what that had replaced, the earliest first."""
    found: dict[str, Record] = {}
    reached = {memory_id}
    while reached:
        replaced = [one for one in candidates if one["superseded_by"] in reached and one["memory_id"] not in found]
        found |= {one["memory_id"]: one for one in sorted(replaced, key=lambda one: one["occurred_at"], reverse=True)}
        reached = {one["memory_id"] for one in replaced}
    return list(reversed(found.values()))


async def _nothing() -> list[Record]:
    return []


def _sources(turn: Record, evidence: Sequence[Mapping[str, Any]]) -> list[Source]:
    """Return a turn's text and resources, as far as they have evidence."""
    texts = {None: turn["text"], **{one["uri"]: one.get("text") or "" for one in turn["resources"]}}
    found = []
    for resource, text in texts.items():
        spans = _spans(turn["memory_id"], resource, evidence)
        if spans:
            found.append(Source(turn, resource, excerpt(pieces_of(text, spans))))
    return found


def _spans(memory_id: str, resource: str | None, evidence: Iterable[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [
        (one["start"], one["end"])
        for one in evidence
        if one.get("memory_id") == memory_id and one.get("resource") == resource
    ]
