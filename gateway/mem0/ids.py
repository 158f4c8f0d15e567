"""mem0's ids of a request, mapped to scopes and conversations. Pure.

`agent_id` and `run_id` are fields of the scope if its model has them. Else an agent is a project and a run a
conversation, so that both can be filtered exactly.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from gateway.service.access import PROJECT
from gateway.service.failures import Refused
from gateway.service.wire import Json
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
    for field, name, value in chain.from_iterable(map(_named_in, sources)):
        if name not in NAMES:
            raise Refused("invalid_value", "memories are filtered by user_id, agent_id and run_id alone", field)
        if not isinstance(value, str) or value in ("", ANY_VALUE):
            raise Refused("invalid_value", "an id is one string here, and no pattern", field)
        if named.setdefault(name, value) != value:
            raise Refused("invalid_value", f"`{name}` is given twice, with two values", field)
    return Ids(**named)


def _named_in(fields: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    yield from ((name, name, fields[name]) for name in NAMES if fields.get(name) is not None)
    yield from _flattened(fields.get("filters") or {}, "filters")


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
