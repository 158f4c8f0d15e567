"""LangGraph's store: values by namespace and key, searchable by their content.

    graph = builder.compile(store=ModestreamStore(memory, user_id="u1"))

A namespace is a project below `store/`, a key a conversation in it, a value the JSON of its turn: a put is an edit,
a delete forgets for good. While the memory is away the store is empty, a put waits in the client's outbox, as a second
turn of its key, and a delete raises MemoryClientError: no outbox has it. `memory` is an open `MemoryClient` or
`HttpMemoryClient`; made inside its event loop, the store also serves other threads. Needs the extra `langgraph`.
"""

import asyncio
import json
import operator
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from modestream_client.adapters.agent_memory import LIMIT_S, unless_away
from modestream_client.calls import MemoryCalls
from modestream_client.hits import ListedMemory, MemoryFields

MAX_FOUND = 100
"""Maximum values found for a query, before its filter."""

ROOT = "store/"
"""Prefix of the projects of stores, to distinguish them from other projects."""

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}

Namespace = tuple[str, ...]


class ModestreamStore(BaseStore):
    """One user's store. Operations of a batch run in order."""

    def __init__(self, memory: MemoryCalls, *, user_id: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._loop = asyncio.get_running_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations from another thread than the event loop's."""
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if inside:
            raise RuntimeError("inside the event loop use the methods that begin with a, such as aget")
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return [await self._run(op) for op in ops]

    async def _run(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            memory = await unless_away("get", self._find(op.namespace, op.key))
            return None if memory is None else Item(**_fields_of(memory))
        if isinstance(op, PutOp):
            await self._put(op)
            return None
        if isinstance(op, SearchOp):
            return await unless_away("search", self._search(op)) or []
        if isinstance(op, ListNamespacesOp):
            conditions = op.match_conditions or ()
            every = await unless_away("namespaces", self._namespaces()) or []
            fitting = [namespace for namespace in every if all(is_match(namespace, each) for each in conditions)]
            cut = list(dict.fromkeys(namespace[: op.max_depth] for namespace in fitting))
            return cut[op.offset : op.offset + op.limit]
        raise TypeError(f"{type(op).__name__} is not an operation of this store")

    async def _find(self, namespace: Namespace, key: str) -> ListedMemory | None:
        page = await self._memory.list_memories(
            user_id=self._user_id,
            projects=project_of(namespace),
            conversation_id=key,
            types=["episodic"],
            timeout=LIMIT_S,
        )
        return max(page.items, key=lambda memory: str(_fields_of(memory)["updated_at"]), default=None)

    async def _put(self, op: PutOp) -> None:
        project = project_of(op.namespace)
        if op.value is None:
            await self._memory.forget(conversation_id=op.key, user_id=self._user_id, project_id=project)
            return
        former = await unless_away("put", self._find(op.namespace, op.key))
        now = datetime.now(UTC)
        value = self._memory.remember(
            json.dumps(op.value, ensure_ascii=False),
            conversation_id=op.key,
            # A forgotten turn stays forgotten: a new value needs a new one.
            turn_id=former.turn_id if former else uuid.uuid4().hex,
            occurred_at=former.occurred_at if former else now,
            metadata={"updated_at": now.isoformat()},
            user_id=self._user_id,
            project_id=project,
            timeout=LIMIT_S,
        )
        await unless_away("put", value)

    async def _namespaces(self) -> list[Namespace]:
        listed = self._memory.iter_projects(user_id=self._user_id, timeout=LIMIT_S)
        projects = [project.scope["project_id"] async for project in listed]
        return sorted(namespace for name in projects if (namespace := namespace_of(name)) is not None)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = op.namespace_prefix
        projects = [project_of(each) for each in await self._namespaces() if each[: len(prefix)] == prefix]
        if not projects:
            return []
        if op.query is None:
            listed = self._memory.iter_memories(
                user_id=self._user_id, projects=projects, types=["episodic"], timeout=LIMIT_S
            )
            items = [SearchItem(**_fields_of(memory)) async for memory in listed]
        else:
            answer = await self._memory.retrieve(
                op.query, users=self._user_id, projects=projects, types=["episodic"], top_k=MAX_FOUND, timeout=LIMIT_S
            )
            items = [SearchItem(**_fields_of(hit), score=hit.score) for hit in answer.hits]
        newest: dict[tuple[Namespace, str], SearchItem] = {}
        for item in items:
            # A key has two turns if it was put while the memory was away.
            newest[item.namespace, item.key] = max(
                item, newest.get((item.namespace, item.key), item), key=lambda each: each.updated_at
            )
        passing: Iterator[SearchItem] = (item for item in newest.values() if passes(item.value, op.filter))
        return list(islice(passing, op.offset, op.offset + op.limit))


def _fields_of(memory: MemoryFields) -> dict[str, Any]:
    metadata = getattr(memory, "metadata", {})
    return {
        "namespace": namespace_of(memory.scope["project_id"]),
        "key": memory.conversation_id,
        "value": json.loads(memory.text),
        "created_at": memory.occurred_at,
        "updated_at": metadata.get("updated_at", memory.occurred_at),
    }


def project_of(namespace: tuple[str, ...]) -> str:
    """Return the project of a namespace.

    >>> project_of(("users", "a/b"))
    'store/users/a%2Fb'
    """
    return ROOT + "/".join(quote(part, safe=" ") for part in namespace)


def namespace_of(project_id: str) -> tuple[str, ...] | None:
    """Return the namespace of a store's project, None for other projects.

    >>> namespace_of("store/users/a%2Fb")
    ('users', 'a/b')
    """
    if not project_id.startswith(ROOT):
        return None
    return tuple(unquote(part) for part in project_id.removeprefix(ROOT).split("/"))


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """True if every field equals its value or satisfies its operators. Raises ValueError for an unknown operator."""
    return all(_compares(value.get(name), condition) for name, condition in (wanted or {}).items())


def is_match(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """True if the namespace begins or ends with the path; `*` matches any part."""
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", name) for wanted, name in zip(path, part, strict=True))


def _compares(value: Any, condition: Any) -> bool:
    if not isinstance(condition, Mapping) or not any(str(name).startswith("$") for name in condition):
        return bool(value == condition)
    if unknown := set(condition) - set(COMPARISONS):
        raise ValueError(f"{sorted(unknown)} are not operators; there are {sorted(COMPARISONS)}")
    try:
        return all(COMPARISONS[name](value, wanted) for name, wanted in condition.items())
    except TypeError:
        return False
