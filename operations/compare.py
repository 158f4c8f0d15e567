"""Compare two deployments memory by memory, as a client sees them, and make the second like the first.

Compared are ids, texts, types, times, modes, versions and whether something supersedes it, of turns, distilled memories
and items; and declarations. Where scopes have further fields, ids differ, and turns are compared by conversation and
turn id. `verify` compares log with table, and table with lexical index, by the same function.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from modestream_client import MemoryClient, MemoryClientError
from modestream_client.answers import Json

from agents.rules.evaluation.questions import LoggedTurn
from operations.deployment import Progress, at_most, client_of, deployment_at, list_boundaries, run_command
from schemas.messages.published import Boundary
from schemas.scopes import Scope
from streams.settings import Settings

PAGE = 500

ITEM_TYPES = ("semantic", "procedural", "document", "state_object")
"""Types of items: listed where `types` leaves out `episodic`."""

First = TypeVar("First")
Second = TypeVar("Second")


@dataclass(frozen=True, slots=True)
class Differences:
    """Sorted keys missing in the second, extra in the second, and with differing values; `equal` counts the others."""

    missing: list[str]
    extra: list[str]
    different: list[str]
    equal: int


def differences(
    first: Mapping[str, First], second: Mapping[str, Second], is_alike: Callable[[First, Second], bool]
) -> Differences:
    """Compare two mappings; `is_alike` compares the values of a key that both have. Pure."""
    common = sorted(first.keys() & second.keys())
    different = [key for key in common if not is_alike(first[key], second[key])]
    return Differences(
        missing=sorted(first.keys() - second.keys()),
        extra=sorted(second.keys() - first.keys()),
        different=different,
        equal=len(common) - len(different),
    )


class UserListing:
    """Lists the memories of one user, over the client."""

    def __init__(self, memory: MemoryClient, boundary: Boundary, scope_model: type[Scope]) -> None:
        self._memory = memory
        others = dict.fromkeys(set(scope_model.model_fields) - set(boundary.scope), "*")
        self._selector = {**boundary.scope, **others}

    async def memories(self) -> list[Json]:
        """Return all memories, superseded ones too: turns and distilled memories, then items."""
        listed = [memory async for memory in self._list("memories", include_superseded=True)]
        listed_ids = {memory["memory_id"] for memory in listed}
        items = self._list("memories", include_superseded=True, types=ITEM_TYPES)
        return listed + [memory async for memory in items if memory["memory_id"] not in listed_ids]

    async def scopes(self) -> list[dict[str, str]]:
        return [project["scope"] async for project in self._list("projects")]

    async def declared(self, scope: dict[str, str]) -> Json:
        """Return the declarations of a scope: modes with their embedders, defaults, and names of categories."""
        modes = await run_command(self._memory, "list_modes", scope)
        categories = await run_command(self._memory, "list_categories", scope)
        return {
            "modes": sorted([mode["name"], mode["embedder"]] for mode in modes["modes"]),
            "defaults": [modes["user_default"], modes["project_default"]],
            "categories": sorted(category["name"] for category in categories["categories"]),
        }

    async def _list(self, what: str, types: Sequence[str] | None = None, **filters: Any) -> AsyncIterator[Json]:
        cursor = None
        while True:
            wanted = {"schema": "list.v1", "scope": self._selector, "what": what, "limit": PAGE, "cursor": cursor}
            reply, _ = await self._memory.request("retrieve", {**wanted, "types": types and [*types], **filters})
            for item in reply.result["items"]:
                yield item
            if (cursor := reply.result["next"]) is None:
                return


def logged_turns(memories: Iterable[Json]) -> list[LoggedTurn]:
    """Return the turns among listed memories. Edited ones are left out: their former text is gone."""
    return [
        LoggedTurn(
            memory_id=memory["memory_id"],
            scope=tuple(sorted(memory["scope"].items())),
            conversation_id=memory["conversation_id"],
            mode=memory["mode"],
            role=memory["role"],
            speaker=memory["speaker"],
            text=memory["text"],
            accepted_at=datetime.fromisoformat(memory["accepted_at"]),
        )
        for memory in memories
        if memory["type"] in ("episodic", "working") and memory["turn_id"] is not None and memory["version"] == 1
    ]


USERS_AT_ONCE = 4

COMPARED = ("text", "type", "occurred_at", "mode", "version")
"""Fields of a memory that must be equal."""

COMPARED_ARCHIVED = ("text", "type", "occurred_at", "mode")
"""The same where turns were archived: of an edited turn the archive has only the last text."""

LOOKS = 5
"""Checks of a user until a difference counts: the last writes may not be applied in both."""

LOOK_INTERVAL_S = 1.0

MAX_NAMED = 20


@dataclass(slots=True)
class UserDifferences:
    """Differences of one user: keys missing in the second, extra memories, pairs that differ, declarations."""

    missing: list[str]
    extra: list[Json]
    different: list[tuple[Json, Json]]
    equal: int
    declared: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.different or self.declared)


def compare_memories(
    first: Mapping[str, Json],
    second: Mapping[str, Json],
    first_later: Mapping[str, Json] | None = None,
    compared: Sequence[str] = COMPARED,
) -> UserDifferences:
    """Compare the memories of one user by their keys. Pure.

    `first_later` is the first deployment listed again after the second: its changes meanwhile are not differences.
    """
    later = first if first_later is None else first_later
    in_both = {key: (first[key], later[key]) for key in first.keys() & later.keys()}
    between = differences(
        in_both, second, lambda looks, memory: any(_shown(look, compared) == _shown(memory, compared) for look in looks)
    )
    return UserDifferences(
        missing=between.missing,
        extra=[second[key] for key in between.extra if key not in first and key not in later],
        different=[(later[key], second[key]) for key in between.different],
        equal=between.equal,
    )


def _shown(memory: Json, compared: Sequence[str]) -> list[object]:
    return [*(memory[name] for name in compared), memory["superseded_by"] is None]


class Comparison:
    """Compares users of two open deployments."""

    def __init__(
        self,
        first: MemoryClient,
        second: MemoryClient,
        scopes: tuple[type[Scope], type[Scope]],
        *,
        mend: bool,
        forgotten: Collection[str] = frozenset(),
        compared: Sequence[str] = COMPARED,
    ) -> None:
        """`forgotten` are the ids of the first deployment's forgotten memories, `compared` the fields to compare."""
        self._compared = compared
        self._clients = (first, second)
        self._scopes = scopes
        self._same_fields = set(scopes[0].model_fields) == set(scopes[1].model_fields)
        self._mend = mend
        self._forgotten = forgotten
        self.differing: dict[str, UserDifferences] = {}
        self.failures: dict[str, str] = {}
        self.equal = 0

    async def compare(self, boundary: Boundary) -> None:
        """Compare one user; a difference counts only if it persists."""
        try:
            between = await self._look_until_alike(boundary)
        except MemoryClientError as problem:
            self.failures[boundary.boundary] = str(problem)
            return
        self.equal += between.equal
        if between:
            self.differing[boundary.boundary] = between

    async def _look_until_alike(self, boundary: Boundary) -> UserDifferences:
        """Compare the current memories, several times: the second may be behind, and both may be written to."""
        first, second = [UserListing(*pair) for pair in zip(self._clients, [boundary] * 2, self._scopes, strict=True)]
        before = self._by_key(await first.memories())
        for look in range(LOOKS):
            after = self._by_key(await second.memories())
            between = compare_memories(before, after, compared=self._compared)
            if between:
                between = compare_memories(before, after, self._by_key(await first.memories()), self._compared)
            for scope in await first.scopes() if self._same_fields else ():
                here, there = [await listing.declared(scope) for listing in (first, second)]
                between.declared += [f"{scope}: {name}" for name in here if here[name] != there[name]]
            if not between or look == LOOKS - 1:
                break
            if self._mend:
                await self._make_alike(between)
            await asyncio.sleep(LOOK_INTERVAL_S)
        return between

    def _by_key(self, memories: list[Json]) -> dict[str, Json]:
        if self._same_fields:
            return {memory["memory_id"]: memory for memory in memories}
        return {
            f"{memory['conversation_id']}/{memory['turn_id']}": memory
            for memory in memories
            if memory["turn_id"] is not None
        }

    async def _make_alike(self, between: UserDifferences) -> None:
        """Move memories of the second deployment to the mode that they have in the first, and forget extra ones.

        Turns said only to the second stay: extra memories were forgotten in the first, or distilled from turns of which
        some were.
        """
        for before, after in between.different:
            if before["mode"] != after["mode"]:
                await self._command("set_memory_mode", after, mode=before["mode"])
        for extra in between.extra:
            if (
                extra["memory_id"] in self._forgotten
                or (await self._command("get_memory", extra))["origin"] == "distilled"
            ):
                await self._command("forget", extra)

    async def _command(self, name: str, memory: Json, **arguments: str) -> Json:
        full_arguments = {"memory_id": memory["memory_id"], **arguments}
        return await run_command(self._clients[1], name, memory["scope"], full_arguments)


async def compare_deployments(
    first: Settings,
    second: Settings,
    principal: str | None,
    *,
    mend: bool,
    forgotten: Collection[str],
    compared: Sequence[str] = COMPARED,
) -> bool:
    """Compare all users of the first deployment, print the result; return True if all are alike."""
    first, second = await deployment_at(first), await deployment_at(second)
    boundaries = await list_boundaries(first)
    async with client_of(first, principal) as first_client, client_of(second, principal) as second_client:
        scopes = (first.scope_model, second.scope_model)
        comparison = Comparison(first_client, second_client, scopes, mend=mend, forgotten=forgotten, compared=compared)
        with Progress("compare", len(boundaries), "users") as progress:

            async def work(boundary: Boundary) -> None:
                await comparison.compare(boundary)
                progress.advance()

            await at_most(USERS_AT_ONCE, boundaries, work)
    _print(comparison, len(boundaries))
    return not comparison.differing and not comparison.failures


def _print(comparison: Comparison, users: int) -> None:
    differing = comparison.differing.values()
    counts = (
        f"{comparison.equal} memories alike, {sum(len(user.missing) for user in differing)} missing,"
        f" {sum(len(user.extra) for user in differing)} extra,"
        f" {sum(len(user.different) for user in differing)} different,"
        f" {sum(len(user.declared) for user in differing)} declarations different"
    )
    sys.stdout.write(f"compare: {users} users, {counts}, {len(comparison.failures)} users without an answer\n")
    lines = [f"{user}: {reason}" for user, reason in comparison.failures.items()]
    for user, between in comparison.differing.items():
        lines += [f"{user}: missing {key}" for key in between.missing]
        lines += [f"{user}: extra {memory['memory_id']}" for memory in between.extra]
        for before, after in between.different:
            names = [name for name in COMPARED if before[name] != after[name]] or ["superseded_by"]
            lines.append(f"{user}: {before['memory_id']} differs in {', '.join(names)}")
        lines += [f"{user}: declared otherwise in {declaration}" for declaration in between.declared]
    for line in lines[:MAX_NAMED]:
        sys.stderr.write(f"{line}\n")
