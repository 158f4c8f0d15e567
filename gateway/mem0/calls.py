"""mem0's requests over the gateway's service, and memories as mem0 shows them. All calls raise Refused.

`agent_id` and `run_id` are fields of the scope if its model has them. Else an agent is a project and a run a
conversation, so that both can be filtered exactly.
"""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from modestream_client.operations import LIST_CONVERSATIONS, LIST_MEMORIES, LIST_PROJECTS, SEARCH_MEMORIES
from pydantic_core import to_json

from gateway.http.shapes import Shapes
from gateway.service.access import PROJECT
from gateway.service.backend import Json
from gateway.service.calls import Call
from gateway.service.failures import RETRY_AFTER_S, Refused
from gateway.service.service import MemoryService
from gateway.service.turns import Turn, idempotent_turn_id, with_time
from schemas.messages.lists import MAX_PAGE_ITEMS
from schemas.scopes import ANY_VALUE, Scope

NO_RUN = "mem0"
"""The conversation of messages without a run."""

NO_AGENT = "default"
"""The project of messages without an agent (docs/contract.md)."""

NAMES = ("user_id", "agent_id", "run_id")


class Ids(NamedTuple):
    """The ids of one request."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None


class IdMapping:
    """Maps ids to scopes and conversations of a deployment, and back. The `user_id` is the name of a boundary."""

    def __init__(self, scope: type[Scope]) -> None:
        scope_fields = frozenset(scope.model_fields) - {*scope.boundary_fields}
        self.boundary_fields = scope.boundary_fields
        self._fields = scope_fields
        self._agent = "agent_id" if "agent_id" in scope_fields else PROJECT
        self._run = "run_id" if "run_id" in scope_fields else None

    def write_scope(self, ids: Ids) -> Json:
        """Return the scope of a write."""
        return ({PROJECT: NO_AGENT} if PROJECT in self._fields else {}) | self._named(ids)

    def read_scope(self, ids: Ids) -> Json:
        """Return the scope of a read, with any value of unnamed fields."""
        return {**dict.fromkeys(self._fields, ANY_VALUE), **self._named(ids)}

    def conversation(self, ids: Ids) -> str | None:
        """Return the conversation to filter a read by; None for all, or if the scope has the run."""
        return None if self._run else ids.run_id

    def _named(self, ids: Ids) -> Json:
        named = {self._agent: ids.agent_id} | ({self._run: ids.run_id} if self._run else {})
        return {field: value for field, value in named.items() if value is not None}

    def ids(self, memory: Mapping[str, Any]) -> Json:
        """Return the ids of a memory as mem0 shows them."""
        scope = memory["scope"]
        agent = scope.get(self._agent)
        run = scope.get(self._run) if self._run else memory["conversation_id"]
        return {
            "user_id": self.boundary_fields.name(scope),
            "agent_id": None if self._agent == PROJECT and agent == NO_AGENT else agent,
            "run_id": None if not self._run and run == NO_RUN else run,
        }


def ids_of(*sources: Mapping[str, Any]) -> Ids:
    """Return the ids of a query and a body, those within `filters` included. Raises Refused.

    >>> ids_of({"user_id": "u1", "filters": {"AND": [{"run_id": "r1"}]}})
    Ids(user_id='u1', agent_id=None, run_id='r1')
    """
    named: dict[str, str] = {}
    for source in sources:
        ids = ((name, name, source[name]) for name in NAMES if source.get(name) is not None)
        for field, name, value in chain(ids, _flattened(source.get("filters") or {}, "filters")):
            if name not in NAMES:
                raise Refused("invalid_value", "memories are filtered by user_id, agent_id and run_id alone", field)
            if not isinstance(value, str) or value in ("", ANY_VALUE):
                raise Refused("invalid_value", "an id is one string here, and no pattern", field)
            if named.setdefault(name, value) != value:
                raise Refused("invalid_value", f"`{name}` is given twice, with two values", field)
    return Ids(**named)


def _flattened(filters: object, path: str) -> Iterator[tuple[str, str, object]]:
    """Yield field, name and value of each filter; `AND` is the same as filters in one object."""
    if not isinstance(filters, dict):
        raise Refused("invalid_value", "filters are objects", path)
    for name, value in filters.items():
        field = f"{path}.{str(name)[:80]}"
        if name == "AND" and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from _flattened(inner, f"{field}.{index}")
        else:
            yield field, name, value


ANY_PROJECT: Json = {}
"""The scope of calls about one memory: any project of the user."""

MAX_HITS = 100
"""Hits of one search (docs/contract.md)."""

MAX_SEARCHES = 64
"""Searches for one question about a run: enough among thousands of memories of the same time."""

SHORTEST = timedelta(milliseconds=1)
"""Times are whole milliseconds."""

Window = tuple[datetime, datetime]
"""Since, inclusive, and until, exclusive."""

RETRIABLE = ("unavailable", "timeout")


class Mem0Calls:
    """Add, list, search and forget, by mem0's ids."""

    def __init__(self, service: MemoryService, shapes: Shapes, id_mapping: IdMapping) -> None:
        self._service = service
        self._operations = service.operations
        self._shapes = shapes
        self._ids = id_mapping

    async def add(self, call: Call, ids: Ids, fields: Json, key: str | None) -> list[Json]:
        """Store each message as a turn, in order; all are checked before the first is written."""
        turns = [self._turn(ids, fields, index, key) for index in range(len(fields["messages"]))]
        stored = (await self._service.turns.add_all(call, turns)).body["results"]
        if (failed := next((turn["error"] for turn in stored if "error" in turn), None)) is not None:
            retry_after_s = RETRY_AFTER_S if failed["code"] in RETRIABLE else None
            raise Refused(failed["code"], failed["message"], failed["field"], retry_after_s=retry_after_s)
        return [
            {"id": turn["memory_id"], "memory": message["content"], "event": "NONE" if turn["duplicate"] else "ADD"}
            for message, turn in zip(fields["messages"], stored, strict=True)
        ]

    async def list_page(self, call: Call, ids: Ids, size: int, page: int = 1) -> Json:
        """Return a page of turns, newest first: `items`, `total`, `next`."""
        filters = {"types": ["episodic"], "conversation_id": self._ids.conversation(ids), "limit": size}
        listed: Json = {"next": None}
        for number in range(1, page + 1):
            if number > 1 and listed["next"] is None:
                return {"items": [], "total": listed["total"], "next": None}
            fields = {**filters, "cursor": listed["next"]}
            listed = await self._operations.run(LIST_MEMORIES, call, self._ids.read_scope(ids), fields)
        return {**listed, "items": [memory_of(self._ids, memory) for memory in listed["items"]]}

    async def search(self, call: Call, ids: Ids, query: str, top_k: int, threshold: float) -> list[Json]:
        """Return the best memories of all modes, best first."""
        question: Json = {"query": query, "mode": "*", "top_k": top_k, "min_score": threshold}
        run = self._ids.conversation(ids)
        if run is None:
            hits = (await self._operations.run(SEARCH_MEMORIES, call, self._ids.read_scope(ids), question))["hits"]
        else:
            hits = await self._hits_of_run(call, ids, run, question)
        # Hits have no metadata, and programs of mem0 filter by it.
        records = await asyncio.gather(*(self._record(call, hit) for hit in hits))
        return [
            {**memory_of(self._ids, record), "score": hit["score"]}
            for hit, record in zip(hits, records, strict=True)
            if record is not None
        ]

    async def forget_all(self, call: Call, ids: Ids) -> None:
        """Forget the user, or the agent's or run's memories alone."""
        if ids.agent_id is None and ids.run_id is None:
            await self._service.memories.forget_all(call, ANY_PROJECT, {"user": True})
            return
        run = self._ids.conversation(ids)
        selection: Json = {"project": True} if run is None else {"conversation_id": run}
        for scope in await self._scopes(call, ids, run):
            await self._service.memories.forget_all(call, scope, selection)

    def _turn(self, ids: Ids, request: Json, index: int, key: str | None) -> Turn:
        """Return the turn of a message, checked."""
        message = request["messages"][index]
        turn = {
            **self._ids.write_scope(ids),
            "conversation_id": ids.run_id or NO_RUN,
            "role": message["role"],
            "content": message["content"],
            "metadata": request.get("metadata") or {},
        }
        if message.get("name") is not None:
            turn["speaker"] = message["name"]
        if request.get("timestamp") is not None:
            turn["occurred_at"] = datetime.fromtimestamp(request["timestamp"], UTC).isoformat()
        if key is not None:
            turn["turn_id"] = idempotent_turn_id(key, turn, index)
        try:
            scope, fields = self._shapes.turn.parse(to_json(turn))
            return Turn(scope, fields if key is None else with_time(fields))
        except Refused as refused:
            if refused.field in ("role", "content", "speaker"):
                refused.field = f"messages.{index}.{refused.field.replace('speaker', 'name')}"
            raise

    async def _hits_of_run(self, call: Call, ids: Ids, run: str, question: Json) -> list[Json]:
        """Return the best hits of a run: a search can't be filtered by conversation, but by time."""
        window = await self._window(call, ids, run)
        hits: list[Json] = []
        windows = [] if window is None else [window]
        for _ in range(MAX_SEARCHES):
            if not windows:
                break
            since, until = windows.pop()
            fields = {**question, "top_k": MAX_HITS, "since": since.isoformat(), "until": until.isoformat()}
            any_run = (await self._operations.run(SEARCH_MEMORIES, call, self._ids.read_scope(ids), fields))["hits"]
            mine = [hit for hit in any_run if hit["conversation_id"] == run]
            if len(any_run) < MAX_HITS or len(mine) >= question["top_k"] or until - since <= SHORTEST:
                hits += mine
            else:
                # Hits of other runs may have displaced some of this one: half of the time has fewer of them.
                middle = since + (until - since) / 2
                windows += [(since, middle), (middle, until)]
        return sorted(hits, key=lambda hit: -hit["score"])[: question["top_k"]]

    async def _window(self, call: Call, ids: Ids, run: str) -> Window | None:
        """Return the time of a run, which few memories of other runs share; None for an empty run."""
        fields = {"conversation_id": run, "limit": MAX_PAGE_ITEMS, "include_superseded": True}
        listed = await self._operations.run(LIST_CONVERSATIONS, call, self._ids.read_scope(ids), fields)
        if not listed["items"]:
            return None
        first = min(datetime.fromisoformat(conversation["first"]) for conversation in listed["items"])
        last = max(datetime.fromisoformat(conversation["last"]) for conversation in listed["items"])
        return first, last + SHORTEST

    async def _record(self, call: Call, hit: Json) -> Json | None:
        """Return the record of a hit; None if it was forgotten meanwhile, or is not for this key."""
        scope: dict[str, Any] = self._ids.boundary_fields.others(hit["scope"])
        try:
            return await self._service.memories.get(call, scope, hit["memory_id"])
        except Refused as refused:
            if refused.code in ("not_found", "not_allowed"):
                return None
            raise

    async def _scopes(self, call: Call, ids: Ids, run: str | None) -> list[Json]:
        """Return the scopes with memories of the ids, without the user."""
        fields: Json = {"conversation_id": run, "limit": MAX_PAGE_ITEMS, "include_superseded": True, "cursor": None}
        scopes: list[Json] = []
        while True:
            page = await self._operations.run(LIST_PROJECTS, call, self._ids.read_scope(ids), fields)
            scopes += (self._ids.boundary_fields.others(project["scope"]) for project in page["items"])
            if (cursor := page["next"]) is None:
                return scopes
            fields["cursor"] = cursor


def memory_of(id_mapping: IdMapping, memory: Mapping[str, Any]) -> Json:
    """Return a memory as mem0 shows it."""
    versions = memory.get("versions") or ()
    changed = [version["first_seen"] for version in versions if version["current"] and version["version"] > 1]
    return {
        "id": memory["memory_id"],
        "memory": memory["text"],
        **id_mapping.ids(memory),
        "actor_id": memory["speaker"],
        "role": memory["role"],
        "metadata": memory.get("metadata") or {},
        "created_at": memory["occurred_at"],
        "updated_at": changed[0] if changed else memory["occurred_at"],
    }


def history_of(memory: Mapping[str, Any]) -> list[Json]:
    """Return the versions of a memory, oldest first; replaced texts are null, as they are not kept."""
    return [
        {
            "id": f"{memory['memory_id']}.{version['version']}",
            "memory_id": memory["memory_id"],
            "old_memory": None,
            "new_memory": memory["text"] if version["current"] else None,
            "event": "ADD" if version["version"] == 1 else "UPDATE",
            "created_at": version["first_seen"],
            "updated_at": version["first_seen"],
            "is_deleted": False,
        }
        for version in memory["versions"]
    ]
