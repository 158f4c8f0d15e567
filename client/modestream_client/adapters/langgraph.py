"""LangGraph's store: values by namespace and key, found by what they say.

    graph = builder.compile(store=ModestreamStore(memory, user_id="u1"))

A namespace is a project below `store/`, a key a conversation in it, a value the JSON of its one turn: a put is an edit,
a delete forgets for good. `memory` is an open `MemoryClient` or `HttpMemoryClient`; made inside its event loop, the
store also serves other threads. Needs the extra `langgraph`.
"""

import asyncio
import json
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from modestream_client.adapters.store_queries import is_match, namespace_of, passes, project_of
from modestream_client.calls.memory_calls import MemoryCalls
from modestream_client.hits import ListedMemory, MemoryFields

MAX_FOUND = 100
"""Values that a query is answered with at most, before its filter."""

Namespace = tuple[str, ...]


class ModestreamStore(BaseStore):
    """One user's store. Operations of a batch are carried out in order; all raise MemoryClientError."""

    def __init__(self, memory: MemoryCalls, *, user_id: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._loop = asyncio.get_running_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations from another thread than the event loop's."""
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if inside:
            raise RuntimeError("inside the event loop use the methods that begin with a, such as aget")
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in order."""
        return [await self._run(op) for op in ops]

    async def _run(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = await self._find(op.namespace, op.key)
            return None if found is None else Item(**_fields_of(found))
        if isinstance(op, PutOp):
            await self._put(op)
            return None
        if isinstance(op, SearchOp):
            return await self._search(op)
        if isinstance(op, ListNamespacesOp):
            return await self._list_namespaces(op)
        raise TypeError(f"{type(op).__name__} is no operation of this store")

    async def _find(self, namespace: Namespace, key: str) -> ListedMemory | None:
        page = await self._memory.list_memories(
            user_id=self._user_id, projects=project_of(namespace), conversation_id=key, types=["episodic"], limit=1
        )
        return next(iter(page.items), None)

    async def _put(self, op: PutOp) -> None:
        project = project_of(op.namespace)
        if op.value is None:
            await self._memory.forget(conversation_id=op.key, user_id=self._user_id, project_id=project)
            return
        known = await self._find(op.namespace, op.key)
        now = datetime.now(UTC)
        await self._memory.remember(
            json.dumps(op.value, ensure_ascii=False),
            conversation_id=op.key,
            # A turn that was forgotten stays forgotten: a new value is a new one.
            turn_id=known.turn_id if known else uuid.uuid4().hex,
            occurred_at=known.occurred_at if known else now,
            metadata={"updated_at": now.isoformat()},
            user_id=self._user_id,
            project_id=project,
        )

    async def _namespaces(self) -> list[Namespace]:
        projects = self._memory.iter_projects(user_id=self._user_id)
        return sorted([found async for one in projects if (found := namespace_of(one.scope["project_id"])) is not None])

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        within = [one for one in await self._namespaces() if one[: len(op.namespace_prefix)] == op.namespace_prefix]
        projects = [project_of(one) for one in within]
        if not projects:
            return []
        if op.query is None:
            listed = self._memory.iter_memories(user_id=self._user_id, projects=projects, types=["episodic"])
            found = [SearchItem(**_fields_of(one)) async for one in listed]
        else:
            answer = await self._memory.retrieve(
                op.query, users=self._user_id, projects=projects, types=["episodic"], top_k=MAX_FOUND
            )
            found = [SearchItem(**_fields_of(hit), score=hit.score) for hit in answer.hits]
        passing: Iterator[SearchItem] = (one for one in found if passes(one.value, op.filter))
        return list(islice(passing, op.offset, op.offset + op.limit))

    async def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        fitting = [one for one in await self._namespaces() if all(is_match(one, c) for c in op.match_conditions or ())]
        cut = list(dict.fromkeys(one[: op.max_depth] for one in fitting))
        return cut[op.offset : op.offset + op.limit]


def _fields_of(memory: MemoryFields) -> dict[str, Any]:
    metadata = getattr(memory, "metadata", {})
    return {
        "namespace": namespace_of(memory.scope["project_id"]),
        "key": memory.conversation_id,
        "value": json.loads(memory.text),
        "created_at": memory.occurred_at,
        "updated_at": metadata.get("updated_at", memory.occurred_at),
    }
