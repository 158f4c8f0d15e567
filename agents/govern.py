"""Answers commands: what is declared, what is kept, how it stands.

A command comes in with its scope; its result leaves, or the error that says what to do. Nothing is changed by the
commands that exist so far, so `ok` holds for every later request without waiting.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from agents.ports import Memories, VectorIndex
from agents.rules.decoding import rejected
from agents.word_port import WordIndex
from schemas.commands import Command, GetMemory
from schemas.failures import Rejected, Unavailable
from schemas.memories import EmbeddingStatus, Memory
from schemas.modes import GENERAL, Mode, VectorSpace
from schemas.moments import iso

Standing = Callable[[], dict[str, Any]]
"""How the deployment stands: its lag, by topic."""


COUNTED: tuple[EmbeddingStatus, ...] = ("pending", "ready", "stale", "failed")
"""The statuses that `health` tells of; their sum is what is eligible for a vector."""


class Govern:
    """Commands in, results out."""

    def __init__(
        self,
        memories: Memories,
        words: WordIndex,
        index: VectorIndex,
        space: Callable[[str], VectorSpace],
        general: Mode,
        standing: Standing,
    ) -> None:
        self._memories = memories
        self._words = words
        self._index = index
        self._space = space
        self._general = general
        self._standing = standing
        self._commands = {"get_memory": self._get_memory, "list_modes": self._list_modes, "health": self._health}

    async def command(self, command: Command, partition: int) -> dict[str, Any]:
        """Carry out a command. Raises Rejected with the code of the contract."""
        run = self._commands.get(command.command)
        if run is None:
            known = ", ".join(sorted(self._commands))
            message = f"{command.command[:80]!r} is not a command here; commands are: {known}"
            raise Rejected("unknown_command", message, "command")
        return await run(command, partition)

    async def _get_memory(self, command: Command, partition: int) -> dict[str, Any]:
        try:
            wanted = GetMemory.model_validate(command.arguments)
        except ValidationError as problem:
            error = rejected(problem)
            raise Rejected(error.code, error.message, f"arguments.{error.field}") from None
        memory = self._memories.get(partition, wanted.memory_id)
        if memory is None or memory.scope != command.scope.model_dump():
            raise Rejected("not_found", "this scope has no memory of that id", "arguments.memory_id")
        return shown(memory)

    async def _list_modes(self, _command: Command, _partition: int) -> dict[str, Any]:
        modes = [self._general.model_dump(mode="json")]
        return {"modes": modes, "user_default": GENERAL, "project_default": None}

    async def _health(self, command: Command, partition: int) -> dict[str, Any]:
        counts = self._words.counts(partition, command.scope.boundary)
        modes = {name: self._of_mode(name, counts.get(name, {})) for name in {GENERAL, *counts}}
        return {"modes": modes, "language_model": "none", "vector_index": await self._reachable(), **self._standing()}

    def _of_mode(self, name: str, counts: Mapping[EmbeddingStatus, int]) -> dict[str, Any]:
        named: dict[str, int] = {status: counts.get(status, 0) for status in COUNTED}
        fingerprint = self._space(name).fingerprint.digest
        return {"eligible": sum(named.values()), **named, "fingerprint": fingerprint, "last_backfill": None}

    async def _reachable(self) -> str:
        try:
            await self._index.spaces()
        except Unavailable as problem:
            return f"unavailable: {problem}"
        return "ready"


def shown(memory: Memory) -> dict[str, Any]:
    """The whole record as `get_memory` shows it."""
    internal = {"boundary", "source", "latest", "latest_at", "versions", "current"}
    whole = memory.model_dump(mode="json", exclude=internal)
    versions = [
        {"version": number, "current": number == memory.current + 1, **version.model_dump(mode="json")}
        for number, version in enumerate(memory.versions, 1)
    ]
    return whole | {"version": memory.version, "versions": versions, "occurred_at": iso(memory.occurred_at)}
