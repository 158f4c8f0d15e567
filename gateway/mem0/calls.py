"""mem0's requests over the gateway's service, and memories as mem0 shows them. All calls raise Refused.

`agent_id` and `run_id` are fields of the scope if its model has them. Else an agent is a project and a run a
conversation, so that both can be filtered exactly.
"""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from modestream_client.operations import LIST_MEMORIES, LIST_PROJECTS, SEARCH_MEMORIES
from pydantic_core import to_json

from gateway.http.shapes import Shapes
from gateway.service.access import PROJECT, may
from gateway.service.calls import RETRY_AFTER_S, Call, Json, Refused
from gateway.service.service import MemoryService
from gateway.service.turns import Turn, idempotent_turn_id, with_time
from schemas.messages.retrieval import MAX_PAGE_ITEMS
from schemas.scopes import ANY_VALUE, Scope

NO_RUN = "mem0"
"""The conversation of messages without a run."""

NO_AGENT = "default"
"""The project of messages without an agent (docs/contract.md)."""

NAMES = ("user_id", "agent_id", "run_id")

FILTERS_HERE = "searches and lists are filtered by user_id, agent_id, run_id, and by single values of metadata"

USER_MARK = "~"
"""Between a memory's id and its user."""


class Ids(NamedTuple):
    """The ids of one request, and the metadata of the memories that it is about."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    metadata: Mapping[str, str | float | bool] = MappingProxyType({})


class IdMapping:
    """Maps ids to scopes and conversations of a deployment, and back. The `user_id` is the name of a boundary."""

    def __init__(self, scope: type[Scope]) -> None:
        scope_fields = frozenset(scope.model_fields) - {*scope.boundary_fields}
        self.boundary_fields = scope.boundary_fields
        self._fields = scope_fields
        self._agent = "agent_id" if "agent_id" in scope_fields else PROJECT
        self._run = "run_id" if "run_id" in scope_fields else None

    def write_scope(self, ids: Ids) -> Json:
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
        scope = memory["scope"]
        agent = scope.get(self._agent)
        run = scope.get(self._run) if self._run else memory["conversation_id"]
        return {
            "user_id": self.boundary_fields.name(scope),
            "agent_id": None if self._agent == PROJECT and agent == NO_AGENT else agent,
            "run_id": None if not self._run and run == NO_RUN else run,
        }


def ids_of(*sources: Mapping[str, Any], by_metadata: bool = False) -> Ids:
    """Return the ids of a query and a body, those within `filters` included. Raises Refused.

    `by_metadata`: other filters are top-level values of metadata.

    >>> ids_of({"user_id": "u1", "filters": {"AND": [{"run_id": "r1"}, {"topic": "tea"}]}}, by_metadata=True)
    Ids(user_id='u1', agent_id=None, run_id='r1', metadata={'topic': 'tea'})
    """
    named: dict[str, str] = {}
    metadata: dict[str, str | float | bool] = {}
    for source in sources:
        ids = ((name, name, source[name]) for name in NAMES if source.get(name) is not None)
        for field, name, value in chain(ids, _flattened(source.get("filters") or {}, "filters")):
            if name not in NAMES:
                if not by_metadata or not isinstance(value, str | int | float) or metadata.get(name, value) != value:
                    raise Refused("invalid_value", FILTERS_HERE, field)
                metadata[name] = value
                continue
            if not isinstance(value, str) or value in ("", ANY_VALUE):
                raise Refused("invalid_value", "an id is one string here, and no pattern", field)
            if named.setdefault(name, value) != value:
                raise Refused("invalid_value", f"`{name}` is given twice, with two values", field)
    return Ids(**named, metadata=metadata)


def _flattened(filters: object, path: str) -> Iterator[tuple[str, str, object]]:
    """Yield field, name and value of each filter; `AND` and `metadata` are the same as filters in one object."""
    if not isinstance(filters, dict):
        raise Refused("invalid_value", "filters are objects", path)
    for name, value in filters.items():
        field = f"{path}.{str(name)[:80]}"
        if name == "AND" and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from _flattened(inner, f"{field}.{index}")
        elif name == "metadata":
            yield from _flattened(value, field)
        else:
            yield field, name, value


def nameable_id(call: Call, memory_id: str) -> str:
    """Return a memory's id for a caller: with its user, if the caller's key has none, as mem0 names none later."""
    if call.caller.own_user is not None:
        return memory_id
    return f"{memory_id}{USER_MARK}{urlsafe_b64encode(call.user_id.encode()).rstrip(b'=').decode()}"


def parted_id(nameable: str) -> tuple[str, str | None]:
    """Return the id of a memory and its user, None if the id contains none. Raises Refused."""
    memory_id, mark, user = nameable.partition(USER_MARK)
    try:
        return memory_id, urlsafe_b64decode(user + "=" * (-len(user) % 4)).decode() if mark else None
    except ValueError:
        raise Refused("not_found", "there is no memory of that id", "memory_id") from None


ANY_PROJECT: Json = {}
"""The scope of calls about one memory: any project of the user."""

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
            {
                "id": nameable_id(call, turn["memory_id"]),
                "memory": message["content"],
                "event": "NONE" if turn["duplicate"] else "ADD",
            }
            for message, turn in zip(fields["messages"], stored, strict=True)
        ]

    async def list_page(self, call: Call, ids: Ids, size: int, page: int = 1) -> Json:
        """Return a page of turns, newest first: `items`, `total`, `next`."""
        filters: Json = {"types": ["episodic"], "conversation_id": self._ids.conversation(ids), "limit": size}
        if ids.metadata:
            filters["filters"] = {"metadata": ids.metadata}
        listed: Json = {"next": None}
        for number in range(1, page + 1):
            if number > 1 and listed["next"] is None:
                return {"items": [], "total": listed["total"], "next": None}
            fields = {**filters, "cursor": listed["next"]}
            listed = await self._operations.run(LIST_MEMORIES, call, self._ids.read_scope(ids), fields)
        return {**listed, "items": [memory_of(self._ids, call, memory) for memory in listed["items"]]}

    async def search(self, call: Call, ids: Ids, query: str, top_k: int, threshold: float) -> list[Json]:
        """Return the best memories of all modes, best first."""
        run, metadata = self._ids.conversation(ids), ids.metadata
        filters = ({} if run is None else {"conversation_id": run}) | ({"metadata": metadata} if metadata else {})
        question: Json = {"query": query, "mode": "*", "top_k": top_k, "min_score": threshold, "filters": filters}
        hits = (await self._operations.run(SEARCH_MEMORIES, call, self._ids.read_scope(ids), question))["hits"]
        records = await asyncio.gather(*(self._record(call, hit) for hit in hits))
        return [
            {**memory_of(self._ids, call, record), "score": hit["score"]}
            for hit, record in zip(hits, records, strict=True)
            if record is not None
        ]

    async def forget_all(self, call: Call, ids: Ids) -> None:
        """Forget the user, or only the agent's or run's memories."""
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

    async def _record(self, call: Call, hit: Json) -> Json | None:
        """Return a hit, or an edited memory's record with the edit's time; None if the key may not see it."""
        scope: dict[str, Any] = self._ids.boundary_fields.others(hit["scope"])
        if hit["version"] == 1:
            return hit if may(call.caller, call.user_id, scope, "read") else None
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


def memory_of(id_mapping: IdMapping, call: Call, memory: Mapping[str, Any]) -> Json:
    versions = memory.get("versions") or ()
    changed = [version["first_seen"] for version in versions if version["current"] and version["version"] > 1]
    return {
        "id": nameable_id(call, memory["memory_id"]),
        "memory": memory["text"],
        **id_mapping.ids(memory),
        "actor_id": memory["speaker"],
        "role": memory["role"],
        "metadata": memory.get("metadata") or {},
        "created_at": memory["occurred_at"],
        "updated_at": changed[0] if changed else memory["occurred_at"],
    }


def history_of(call: Call, memory: Mapping[str, Any]) -> list[Json]:
    """Return the versions of a memory, oldest first; replaced texts are null, as they are not kept."""
    return [
        {
            "id": f"{memory['memory_id']}.{version['version']}",
            "memory_id": nameable_id(call, memory["memory_id"]),
            "old_memory": None,
            "new_memory": memory["text"] if version["current"] else None,
            "event": "ADD" if version["version"] == 1 else "UPDATE",
            "created_at": version["first_seen"],
            "updated_at": version["first_seen"],
            "is_deleted": False,
        }
        for version in memory["versions"]
    ]
