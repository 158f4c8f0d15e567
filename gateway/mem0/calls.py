"""What mem0's requests do, over the service of all doors. All raise Refused."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from modestream_client.operations import LIST_CONVERSATIONS, LIST_MEMORIES, LIST_PROJECTS, SEARCH_MEMORIES
from pydantic_core import to_json

from gateway.http.contract import Shapes
from gateway.mem0.answers import added, memory_of
from gateway.mem0.ids import NO_RUN, Ids, Places
from gateway.service.calls import Call
from gateway.service.failures import RETRY_AFTER_S, Refused
from gateway.service.service import MemoryService
from gateway.service.turns import Turn, idempotent_turn_id, with_time
from gateway.service.wire import Json
from schemas.messages.lists import MAX_PAGE_ITEMS

ANY_PROJECT: Json = {}
"""The scope of calls about one memory: it is found in any project of the user."""

MAX_HITS = 100
"""Hits of one search (docs/contract.md)."""

MAX_SEARCHES = 64
"""Searches of one run: enough for a run among thousands of memories of the same time."""

SHORTEST = timedelta(milliseconds=1)
"""Times are whole milliseconds."""

Window = tuple[datetime, datetime]
"""Since, and until without it."""

RETRIABLE = ("unavailable", "timeout")


class Mem0Calls:
    """Add, list, search and forget, by mem0's ids."""

    def __init__(self, service: MemoryService, shapes: Shapes, places: Places) -> None:
        self._service = service
        self._operations = service.operations
        self._shapes = shapes
        self._places = places

    async def add(self, call: Call, ids: Ids, fields: Json, key: str | None) -> list[Json]:
        """Store each message as a turn, in order; all are checked before the first is written."""
        turns = [self._turn(ids, fields, place, key) for place in range(len(fields["messages"]))]
        stored = (await self._service.turns.add_all(call, turns)).body["results"]
        if (failed := next((one["error"] for one in stored if "error" in one), None)) is not None:
            retry_after_s = RETRY_AFTER_S if failed["code"] in RETRIABLE else None
            raise Refused(failed["code"], failed["message"], failed["field"], retry_after_s=retry_after_s)
        return [added(message["content"], one) for message, one in zip(fields["messages"], stored, strict=True)]

    async def list_page(self, call: Call, ids: Ids, size: int, page: int = 1) -> Json:
        """Return a page of turns, newest first: `items`, `total`, `next`."""
        asked = {"types": ["episodic"], "conversation_id": self._places.conversation(ids), "limit": size}
        listed: Json = {"next": None}
        for number in range(1, page + 1):
            if number > 1 and listed["next"] is None:
                return {"items": [], "total": listed["total"], "next": None}
            fields = {**asked, "cursor": listed["next"]}
            listed = await self._operations.run(LIST_MEMORIES, call, self._places.selector(ids), fields)
        return {**listed, "items": [memory_of(self._places, one) for one in listed["items"]]}

    async def search(self, call: Call, ids: Ids, query: str, top_k: int, threshold: float) -> list[Json]:
        """Return the memories that match, best first, from all modes."""
        asked: Json = {"query": query, "mode": "*", "top_k": top_k, "min_score": threshold}
        run = self._places.conversation(ids)
        if run is None:
            hits = (await self._operations.run(SEARCH_MEMORIES, call, self._places.selector(ids), asked))["hits"]
        else:
            hits = await self._hits_of_run(call, ids, run, asked)
        # Hits have no metadata, and programs of mem0 filter by it.
        records = await asyncio.gather(*(self._record(call, hit) for hit in hits))
        pairs = zip(hits, records, strict=True)
        return [{**memory_of(self._places, one), "score": hit["score"]} for hit, one in pairs if one is not None]

    async def forget_all(self, call: Call, ids: Ids) -> None:
        """Forget the user, or the agent's or run's memories alone."""
        if ids.agent_id is None and ids.run_id is None:
            await self._service.memories.forget_all(call, ANY_PROJECT, {"user": True})
            return
        run = self._places.conversation(ids)
        what: Json = {"project": True} if run is None else {"conversation_id": run}
        for scope in await self._scopes(call, ids, run):
            await self._service.memories.forget_all(call, scope, what)

    def _turn(self, ids: Ids, asked: Json, place: int, key: str | None) -> Turn:
        """Return the turn of a message, checked."""
        message = asked["messages"][place]
        turn = {
            **self._places.scope(ids),
            "conversation_id": ids.run_id or NO_RUN,
            "role": message["role"],
            "content": message["content"],
            "metadata": asked.get("metadata") or {},
        }
        if message.get("name") is not None:
            turn["speaker"] = message["name"]
        if asked.get("timestamp") is not None:
            turn["occurred_at"] = datetime.fromtimestamp(asked["timestamp"], UTC).isoformat()
        if key is not None:
            turn["turn_id"] = idempotent_turn_id(key, turn, place)
        try:
            scope, fields = self._shapes.turn.parse(to_json(turn))
            return Turn(scope, fields if key is None else with_time(fields))
        except Refused as refused:
            if refused.field in ("role", "content", "speaker"):
                refused.field = f"messages.{place}.{refused.field.replace('speaker', 'name')}"
            raise

    async def _hits_of_run(self, call: Call, ids: Ids, run: str, asked: Json) -> list[Json]:
        """Return the best hits of a run: a question can't name a conversation, but a time."""
        window = await self._window(call, ids, run)
        hits: list[Json] = []
        windows = [] if window is None else [window]
        for _ in range(MAX_SEARCHES):
            if not windows:
                break
            since, until = windows.pop()
            fields = {**asked, "top_k": MAX_HITS, "since": since.isoformat(), "until": until.isoformat()}
            found = (await self._operations.run(SEARCH_MEMORIES, call, self._places.selector(ids), fields))["hits"]
            mine = [hit for hit in found if hit["conversation_id"] == run]
            if len(found) < MAX_HITS or len(mine) >= asked["top_k"] or until - since <= SHORTEST:
                hits += mine
            else:
                # Hits of other runs may have left out some of this one: they are fewer in half of the time.
                middle = since + (until - since) / 2
                windows += [(since, middle), (middle, until)]
        return sorted(hits, key=lambda hit: -hit["score"])[: asked["top_k"]]

    async def _window(self, call: Call, ids: Ids, run: str) -> Window | None:
        """Return the time of a run, so that a search of it meets little else; None if there is none."""
        fields = {"conversation_id": run, "limit": MAX_PAGE_ITEMS, "include_superseded": True}
        listed = await self._operations.run(LIST_CONVERSATIONS, call, self._places.selector(ids), fields)
        if not listed["items"]:
            return None
        first = min(datetime.fromisoformat(one["first"]) for one in listed["items"])
        last = max(datetime.fromisoformat(one["last"]) for one in listed["items"])
        return first, last + SHORTEST

    async def _record(self, call: Call, hit: Json) -> Json | None:
        """Return the whole memory of a hit; None if it was forgotten since, or is not for this key."""
        scope: dict[str, Any] = self._places.boundary_fields.others(hit["scope"])
        try:
            return await self._service.memories.get(call, scope, hit["memory_id"])
        except Refused as refused:
            if refused.code in ("not_found", "not_allowed"):
                return None
            raise

    async def _scopes(self, call: Call, ids: Ids, run: str | None) -> list[Json]:
        """Return the scopes, without the user, that have memories of the ids."""
        fields: Json = {"conversation_id": run, "limit": MAX_PAGE_ITEMS, "include_superseded": True, "cursor": None}
        scopes: list[Json] = []
        while True:
            page = await self._operations.run(LIST_PROJECTS, call, self._places.selector(ids), fields)
            scopes += (self._places.boundary_fields.others(one["scope"]) for one in page["items"])
            if (cursor := page["next"]) is None:
                return scopes
            fields["cursor"] = cursor
