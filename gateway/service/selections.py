"""Many memories at once: move them to a mode, or forget them, each in its own scope.

Guaranteed: the failure of one costs the others nothing, and is told; a bounded number is under way at once.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from modestream_client.arguments import MAX_MOVED_MEMORIES
from modestream_client.operations import FORGET, SET_MEMORY_MODE

from gateway.service.audit import audited
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.requests import CheckedRequests

MAX_SELECTED = MAX_MOVED_MEMORIES
"""Memories of one selection: as many as one command moves."""

AT_ONCE = 8
"""Commands at the same time: forgetting 500 takes some seconds, and other callers are answered in between."""


class Selected(NamedTuple):
    """One memory of a selection; `scope` is its own, without the user."""

    memory_id: str
    scope: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """The number of memories that were changed, and of those that were refused with the first reason for it."""

    count: int
    failed: int = 0
    refusal: Refused | None = None


class Selections:
    """Commands on selections. All raise Refused where nothing at all could be done."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def move(self, call: Call, selected: Sequence[Selected], mode: str) -> Outcome:
        """Move memories to another mode, those of one scope with one command."""
        _require_bounded(selected)
        by_scope: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for one in selected:
            by_scope.setdefault(tuple(sorted(one.scope.items())), []).append(one.memory_id)
        return await _settled([(self._move(call, dict(scope), ids, mode), len(ids)) for scope, ids in by_scope.items()])

    async def forget(self, call: Call, selected: Sequence[Selected]) -> Outcome:
        """Forget memories and what derives from them; `count` includes the latter."""
        _require_bounded(selected)
        return await _settled([(self._forget(call, one), 1) for one in dict.fromkeys(map(_hashable, selected))])

    async def _move(self, call: Call, scope: dict[str, str], memory_ids: list[str], mode: str) -> int:
        arguments = {"memory_ids": memory_ids, "mode": mode}
        return int((await self._requests.ask(SET_MEMORY_MODE, call, scope, arguments)).result["moved"])

    async def _forget(self, call: Call, one: tuple[str, tuple[tuple[str, str], ...]]) -> int:
        memory_id, scope = one
        what = {"memory_id": memory_id}
        with audited(call, "forget", dict(scope), what=what) as counts:
            reply = await self._requests.ask(FORGET, call, dict(scope), what)
            counts["forgotten"] = int(reply.result["forgotten"])
        return counts["forgotten"]


def _hashable(one: Selected) -> tuple[str, tuple[tuple[str, str], ...]]:
    return one.memory_id, tuple(sorted(one.scope.items()))


def _require_bounded(selected: Sequence[Selected]) -> None:
    if not selected:
        raise Refused("invalid_value", "select at least one memory", "selected")
    if len(selected) > MAX_SELECTED:
        raise Refused("too_large", f"select at most {MAX_SELECTED} memories at once", "selected")


async def _settled(commands: Sequence[tuple[Awaitable[int], int]]) -> Outcome:
    """Carry out commands, each about a number of memories. Raises the first refusal if all were refused."""
    places = asyncio.Semaphore(AT_ONCE)

    async def carried_out(command: Awaitable[int]) -> int | Refused:
        async with places:
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
