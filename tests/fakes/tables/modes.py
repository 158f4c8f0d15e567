"""The table `modes` over a dict."""

from collections.abc import Awaitable, Callable
from typing import Any

from schemas.state.modes import Mode, ModeDeclarations


class FakeModes:
    """Implements `streams.flow.stores.Table` for modes in memory; `reads` counts the reads.

    `complete` adds the deployment's `general` to what is read.
    """

    def __init__(self) -> None:
        self.reads = 0
        self.complete: Callable[[ModeDeclarations], ModeDeclarations] = lambda declared: declared
        self._kept: dict[tuple[int, str], str] = {}

    def get(self, partition: int, boundary: str) -> ModeDeclarations:
        self.reads += 1
        stored = self._kept.get((partition, boundary))
        return self.complete(ModeDeclarations() if stored is None else ModeDeclarations.model_validate_json(stored))

    def put(self, partition: int, boundary: str, declared: ModeDeclarations) -> None:
        self._kept[partition, boundary] = declared.model_dump_json()

    def declare(self, *modes: Mode, boundary: str = "ana", partition: int = 0) -> None:
        declared = self.get(partition, boundary)
        self.put(partition, boundary, declared.model_copy(update={"modes": (*declared.modes, *modes)}))

    def pending_writes(self) -> list[Awaitable[Any]]:
        """Return nothing: a dict is written at once."""
        return []
