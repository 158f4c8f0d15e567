"""Turns: store one, or many in order; export all as `turn.v1`.

A turn is durable and can be found when its answer comes. Publishing an export again changes nothing.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from modestream_client.operations import LIST_MEMORIES
from modestream_client.records import TURNS_TOPIC, Written, build_record

from gateway.service.access import audited
from gateway.service.calls import Call, Json, Refused
from gateway.service.operations import Operations
from gateway.service.requests import CheckedRequests, warnings_of
from schemas.state.memories import PublishedResource

FORGOTTEN = "forgotten"
"""The warning of a turn that was forgotten: it is answered, and not stored again."""


class Turn(NamedTuple):
    """A turn without schema and scope, and its scope without the user."""

    scope: Json
    fields: Mapping[str, Any]


class Stored(NamedTuple):
    """The answer to writes. `is_new`: something new was stored."""

    body: Json
    is_new: bool


class Turns:
    """Turns in; the fields of a turn's reply, and `read_after`, out."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def add(self, call: Call, turn: Turn) -> Stored:
        """Store one turn. Raises Refused."""
        answer, written = await self._add(call, turn)
        return Stored({**answer, "read_after": written.read_after}, _is_new(answer))

    async def add_all(self, call: Call, turns: Sequence[Turn | Refused]) -> Stored:
        """Store turns in order; a refused one is an `error` at its index, and the others are stored.

        Raises Refused if all fail for lack of access, service or time.
        """

        async def add(turn: Turn | Refused) -> tuple[Json, Written] | Refused:
            if isinstance(turn, Refused):
                return turn
            try:
                return await self._add(call, turn)
            except Refused as refused:
                return refused

        outcomes = await asyncio.gather(*map(add, turns))
        refusals = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
        if len(refusals) == len(outcomes) and refusals[0].code in ("not_allowed", "unavailable", "timeout", "internal"):
            raise refusals[0]
        written: list[Written] = []
        results: list[Json] = []
        for outcome in outcomes:
            if isinstance(outcome, Refused):
                error = {"code": outcome.code, "message": outcome.message, "field": outcome.field}
                results.append({"error": error})
            else:
                results.append(outcome[0])
                written.append(outcome[1])
        last = max(written, key=lambda position: position.offset).read_after if written else None
        return Stored({"results": results, "read_after": last}, any(map(_is_new, results)))

    async def publish(self, call: Call, turn: Turn) -> Written:
        """Write one turn, and wait only until Kafka has it. Raises Refused."""
        return await self._requests.write(call, TURNS_TOPIC, self._record(call, turn), "write")

    async def _add(self, call: Call, turn: Turn) -> tuple[Json, Written]:
        record = self._record(call, turn)
        # No deadline: it would not prevent the turn from being stored, only its reply from being sent.
        reply, written = await self._requests.send(call, TURNS_TOPIC, record, "write", deadline=False)
        return {**reply.result, "warnings": warnings_of(reply)}, written

    def _record(self, call: Call, turn: Turn) -> Json:
        return build_record("turn.v1", **{**turn.fields, "scope": self._requests.full_scope(call, turn.scope)})


def idempotent_turn_id(key: str, turn: Json, index: int | None = None) -> str:
    """Return the turn id for an idempotency key: another turn, or another index, gets another id.

    >>> idempotent_turn_id("k", {"content": "a"}) == idempotent_turn_id("k", {"content": "b"})
    False
    """
    text = json.dumps([key, index, turn], sort_keys=True, ensure_ascii=False)
    return "idem-" + hashlib.sha256(text.encode()).hexdigest()


def with_time(fields: Mapping[str, Any]) -> Json:
    """Return the fields of a turn whose id is derived from its content, with the present time if it has none.

    Its record can be replayed then. Another attempt has another time, and as a duplicate changes nothing.
    """
    return {**fields, "occurred_at": fields.get("occurred_at") or datetime.now(UTC)}


def _is_new(answer: Json) -> bool:
    forgotten = any(warning["code"] == FORGOTTEN for warning in answer.get("warnings", ()))
    return "error" not in answer and not answer.get("duplicate") and not forgotten


PAGE_ITEMS = 200
"""Turns of one page: about 300 kB with usual texts, never more than a reply may have."""

PAGE_WAIT_S = 30.0
"""Seconds of one page; the whole export may take as long as its reader does."""

SAME_FIELDS = ("turn_id", "scope", "conversation_id", "role", "speaker", "occurred_at", "mode", "importance")
"""Fields of a listed turn with the same name in the record."""

FILTERS = ("searchable", "private")
"""Fields of a listed turn that are present only with unusual values."""

PUBLISHED = frozenset(PublishedResource.model_fields)
"""Fields of a resource that its turn had; a whole record also says what became of reading it."""


class Export:
    """Pages of turns in, records out."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def turns(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> AsyncGenerator[list[Json]]:
        """Return the turns, oldest first, in pages. Raises Refused if even the first page fails."""
        asked = {**fields, "types": ["episodic"], "order": "oldest", "include_superseded": True, "limit": PAGE_ITEMS}
        try:
            first = await self._operations.run(LIST_MEMORIES, call, scope, asked)
        except Refused:
            with audited(call, "export", scope):
                raise
        return self._pages(call, scope, asked, first)

    async def selected(self, call: Call, records: Sequence[Json]) -> list[Json]:
        """Return the records of these memories' turns; facts and summaries have none. They were read by the caller."""
        with audited(call, "export", {}) as counts:
            turns = [turn_of(record) for record in records if record.get("origin", "said") == "said"]
            counts["turns"] = len(turns)
        return turns

    async def _pages(self, call: Call, scope: Json, asked: Json, page: Json) -> AsyncGenerator[list[Json]]:
        with audited(call, "export", scope) as counts:
            counts["turns"] = 0
            while True:
                turns = [turn_of(item) for item in page["items"] if item["turn_id"] is not None]
                yield turns
                counts["turns"] += len(turns)
                if page["next"] is None:
                    return
                later = replace(call, deadline=time.monotonic() + PAGE_WAIT_S)
                page = await self._operations.run(LIST_MEMORIES, later, scope, {**asked, "cursor": page["next"]})


def turn_of(item: Json) -> Json:
    """Return the original record of a listed turn, with its present mode and filters.

    Filters of its mode become the turn's own: they also hold in a deployment without that mode.
    """
    same = {name: item[name] for name in SAME_FIELDS}
    filters = {name: item[name] for name in FILTERS if name in item}
    return {
        "schema": "turn.v1",
        **same,
        **filters,
        "content": item["text"],
        "resources": [
            {name: value for name, value in resource.items() if name in PUBLISHED}
            for resource in item.get("resources", [])
        ],
        "metadata": item["metadata"],
    }
