"""One memory, many memories, or forgetting: show, move, edit, correct, filter, forget.

Another user's memory is not found, like one that does not exist. In a selection the failure of one memory does not
affect the others, and is reported; a bounded number is in flight at once.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple, Protocol

from modestream_client import operations as rows
from modestream_client.arguments import MAX_MOVED_MEMORIES
from modestream_client.operations import Operation
from pydantic_core import from_json

from gateway.service.access import DEFAULT_PROJECT, PROJECT, audited, may_read_project, readable_project, require_scope
from gateway.service.calls import Call, Json, Refused
from gateway.service.requests import CheckedRequests, result_of
from gateway.service.turns import Turn, Turns
from schemas.messages.records import Record
from schemas.moments import milliseconds_of
from schemas.scope_models import some_scope
from schemas.scopes import ANY_VALUE, Scope
from schemas.state.memories import hash_texts

MAX_PROJECTS = 500
"""Projects whose memories are moved when no project is named: one page of a list."""

MAX_MOVED = 20_000
"""Maximum memories of one call of `move_all`: the points of a whole map, 40 commands."""

REPEATED = ("turn_id", "conversation_id", "role", "speaker", "occurred_at", "importance", "resources", "metadata")
"""Fields of a record that its next version repeats."""


MAX_SELECTED = MAX_MOVED_MEMORIES
"""Maximum memories of one selection: as many as one command moves."""

AT_ONCE = 8
"""Concurrent commands: forgetting 500 takes a few seconds, and other callers are answered in between."""


MAX_FORMER_TEXTS = 10
"""Versions of a turn whose texts are looked for, the latest."""


class RecordedTurns(Protocol):
    """The log of turns. Raises Refused, `unavailable`."""

    async def since(self, partition: int, moments_ms: Sequence[int]) -> Sequence[Sequence[Record]]:
        """Return for each moment the first records of a partition from then on, some hundred at most."""


class NoRecordedTurns:
    """A log without turns, for a service that reads none."""

    async def since(self, partition: int, moments_ms: Sequence[int]) -> Sequence[Sequence[Record]]:  # noqa: ARG002
        return [[] for _ in moments_ms]


class Selected(NamedTuple):
    """One memory of a selection; `scope` is its own, without the user."""

    memory_id: str
    scope: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """Numbers of changed and of refused memories, and the first refusal."""

    count: int
    failed: int = 0
    refusal: Refused | None = None


class Memories:
    """Commands on memories. `scope` has the project, or nothing for any project of the user."""

    def __init__(
        self, requests: CheckedRequests, turns: Turns, scope: type[Scope], recorded: RecordedTurns | None = None
    ) -> None:
        """`scope` is the deployment's scope model."""
        self._recorded = recorded or NoRecordedTurns()
        self._others = scope.boundary_fields.others
        self._requests = requests
        self._turns = turns
        self._scope_fields = frozenset(self._others(scope.model_fields))
        self._any_scope = self._others(some_scope(scope))

    async def get(self, call: Call, scope: Json, memory_id: str) -> Json:
        """Return the whole record. Raises Refused, `not_found`."""
        if isinstance(scope.get(PROJECT), str) and scope[PROJECT] != ANY_VALUE:
            return await self._get(call, scope, memory_id)
        require_scope(call.caller, call.user_id, {PROJECT: ANY_VALUE, **scope}, "read")
        # The service finds it by its id, in all projects that the sender may read: the command may name any of those.
        where = {**self._any_scope, PROJECT: readable_project(call.caller, call.user_id)}
        record = await self._command(rows.GET_MEMORY, call, where, {"memory_id": memory_id, "any_project": True})
        for name, wanted in scope.items():
            value = record["scope"].get(name)
            if wanted != ANY_VALUE and not (value in wanted if isinstance(wanted, list) else value == wanted):
                raise _not_found()
        if not may_read_project(call.caller, call.user_id, record["scope"].get(PROJECT)):
            raise _not_found()
        return record

    async def former_texts(self, call: Call, record: Json) -> dict[str, str]:
        """Return former texts of a readable record by `text_hash`, without those that the log has no longer.

        Raises Refused, `unavailable`.
        """
        former = [version for version in record["versions"][-MAX_FORMER_TEXTS:] if not version["current"]]
        hashes = {version["text_hash"] for version in former}
        moments = [milliseconds_of(datetime.fromisoformat(version["first_seen"])) for version in former]
        texts: dict[str, str] = {}
        for records in await self._recorded.since(await self._requests.partition_of(call.user_id), moments):
            # By its hash alone: a text of another turn that is the same says nothing that this memory does not. A text
            # that a step of the deployment changed before it was stored has another hash, and is not shown.
            for content in map(_content_of, records):
                if content is not None and (text_hash := hash_texts([content])) in hashes:
                    texts[text_hash] = content
        return texts

    async def change(
        self, operation: Operation[Any], call: Call, scope: Json, memory_id: str, fields: Mapping[str, Any]
    ) -> Json:
        """Execute a command on one memory, such as `set_memory_mode`; return its record."""
        where = (await self.get(call, scope, memory_id))["scope"]
        await self._command(operation, call, where, {"memory_id": memory_id, **fields})
        return await self._get(call, where, memory_id)

    async def move_all(self, call: Call, by_project: Mapping[str, Sequence[str]], mode: str) -> Json:
        """Move memories, by project (`*`: any of the user), to another mode; return `{"moved": n}`.

        Ids that are not in their project are skipped. Commands go out one after the other: an error, such as a timeout,
        leaves those before it done, and repeating the call does the rest.
        """
        if (asked := sum(map(len, by_project.values()))) > MAX_MOVED:
            raise Refused("too_large", f"{asked} memories are too many at once: {MAX_MOVED} can be moved", "memory_ids")
        moved = 0
        for project, memory_ids in by_project.items():
            scopes = await self._scopes_of(call, project)
            for start, scope in product(range(0, len(memory_ids), MAX_MOVED_MEMORIES), scopes):
                arguments = {"memory_ids": list(memory_ids[start : start + MAX_MOVED_MEMORIES]), "mode": mode}
                try:
                    moved += int((await self._command(rows.SET_MEMORY_MODE, call, scope, arguments))["moved"])
                except Refused as refused:
                    if refused.code != "not_found":
                        raise
        return {"moved": moved}

    async def edit(self, call: Call, scope: Json, memory_id: str, text: str) -> Json:
        """Give a turn another text, as a new version of it; return its record."""
        record = await self.get(call, scope, memory_id)
        if record.get("turn_id") is None:
            raise Refused(
                "invalid_value", "only a turn has an editable text; edit the turns that it derives from", "text"
            )
        fields = {name: record[name] for name in REPEATED if record.get(name) is not None}
        stored = await self._turns.add(call, Turn(self._others(record["scope"]), {**fields, "content": text}))
        edited = await self._get(call, record["scope"], memory_id)
        return {**edited, "read_after": stored.body["read_after"]}

    async def forget(self, call: Call, scope: Json, memory_id: str) -> Json:
        """Forget a memory and its derived data; return `{"forgotten": n}`, 0 for an unknown memory."""
        try:
            where = (await self.get(call, scope, memory_id))["scope"]
        except Refused as refused:
            if refused.code != "not_found":
                raise
            return {"forgotten": 0}
        return await self._forgotten(call, where, {"memory_id": memory_id})

    async def forget_all(self, call: Call, scope: Json, what: Mapping[str, Any]) -> Json:
        """Forget a conversation, a project or the user: `what` are the arguments of `forget`."""
        return await self._forgotten(call, scope, what)

    async def move_selected(self, call: Call, selected: Sequence[Selected], mode: str) -> Outcome:
        """Move memories to another mode, those of one scope with one command. Raises Refused if none could be."""
        _require_bounded(selected)
        by_scope: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for memory in selected:
            by_scope.setdefault(tuple(sorted(memory.scope.items())), []).append(memory.memory_id)

        async def move(scope: Mapping[str, str], memory_ids: Sequence[str]) -> int:
            arguments = {"memory_ids": memory_ids, "mode": mode}
            return int((await self._requests.ask(rows.SET_MEMORY_MODE, call, dict(scope), arguments)).result["moved"])

        return await _settled([(move(dict(scope), ids), len(ids)) for scope, ids in by_scope.items()])

    async def forget_selected(self, call: Call, selected: Sequence[Selected]) -> Outcome:
        """Forget memories and their derived data, which `count` includes. Raises Refused if none could be."""
        _require_bounded(selected)
        distinct = dict.fromkeys((memory.memory_id, tuple(sorted(memory.scope.items()))) for memory in selected)

        async def forget(memory_id: str, scope: Json) -> int:
            what = {"memory_id": memory_id}
            with audited(call, "forget", scope, what=what) as counts:
                reply = await self._requests.ask(rows.FORGET, call, scope, what)
                counts["forgotten"] = int(reply.result["forgotten"])
            return counts["forgotten"]

        return await _settled([(forget(memory_id, dict(scope)), 1) for memory_id, scope in distinct])

    async def _forgotten(self, call: Call, scope: Json, what: Mapping[str, Any]) -> Json:
        with audited(call, "forget", self._others(scope), what=dict(what)) as counts:
            result = await self._command(rows.FORGET, call, scope, what)
            counts["forgotten"] = result["forgotten"]
        return result

    async def _scopes_of(self, call: Call, project: str) -> list[Json]:
        """Return the scopes of a project, the default first: just one if the deployment has no further fields."""
        if self._scope_fields == {PROJECT} and project != ANY_VALUE:
            return [{PROJECT: project}]
        asked = {**dict.fromkeys(self._scope_fields, ANY_VALUE), PROJECT: project}
        fields = {"limit": MAX_PROJECTS, "include_superseded": True}
        listed = (await self._requests.ask(rows.LIST_PROJECTS, call, asked, fields)).result["items"]
        return sorted((item["scope"] for item in listed), key=lambda item: item.get(PROJECT) != DEFAULT_PROJECT)

    async def _get(self, call: Call, scope: Json, memory_id: str) -> Json:
        return await self._command(rows.GET_MEMORY, call, scope, {"memory_id": memory_id})

    async def _command(self, operation: Operation[Any], call: Call, scope: Json, arguments: Mapping[str, Any]) -> Json:
        try:
            return result_of(await self._requests.ask(operation, call, self._others(scope), arguments))
        except Refused as refused:
            if refused.code == "not_found":
                raise _not_found() from None
            raise


def _content_of(record: Record) -> str | None:
    """Return the text of a record of the topic of turns; None for any other record."""
    try:
        turn = from_json(record.value or b"")
    except ValueError:
        return None
    content = turn.get("content") if isinstance(turn, dict) else None
    return content if isinstance(content, str) else None


def _not_found() -> Refused:
    return Refused("not_found", "this user has no memory of that id", "memory_id")


def _require_bounded(selected: Sequence[Selected]) -> None:
    if not selected:
        raise Refused("invalid_value", "select at least one memory", "selected")
    if len(selected) > MAX_SELECTED:
        raise Refused("too_large", f"select at most {MAX_SELECTED} memories at once", "selected")


async def _settled(commands: Sequence[tuple[Awaitable[int], int]]) -> Outcome:
    """Execute commands, each about a number of memories. Raises the first refusal if all were refused."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def carried_out(command: Awaitable[int]) -> int | Refused:
        async with slots:
            try:
                return await command
            except Refused as refused:
                return refused

    ends = await asyncio.gather(*(carried_out(command) for command, _ in commands))
    refusals = [end for end in ends if isinstance(end, Refused)]
    if len(refusals) == len(ends):
        raise refusals[0]
    failed = sum(size for end, (_, size) in zip(ends, commands, strict=True) if isinstance(end, Refused))
    count = sum(end for end in ends if not isinstance(end, Refused))
    return Outcome(count, failed, refusals[0] if refusals else None)
