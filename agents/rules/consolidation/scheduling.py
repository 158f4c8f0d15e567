"""Decide which scopes are due for a scheduled consolidation. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from schemas.internal.consolidation import RunHistory
from schemas.state.memories import Memory

MIN_SCOPE_TURNS = 3
"""Turns of a scope below which nothing can be distilled."""


@dataclass(slots=True)
class ScopeTurns:
    """The number of current turns of one scope, and the offset of the newest."""

    scope: Mapping[str, str] = field(default_factory=dict)
    boundary: str = ""
    count: int = 0
    newest: int = -1

    def add(self, memory: Memory) -> None:
        """Count a turn of the scope."""
        self.scope, self.boundary = memory.scope, memory.boundary
        self.count += 1
        self.newest = max(self.newest, memory.source)


def is_consolidation_due(turns: ScopeTurns, runs: RunHistory, now: datetime, every: timedelta) -> bool:
    """True if the scope has new turns since its last run, and that run is at least `every` ago."""
    if turns.count < MIN_SCOPE_TURNS:
        return False
    last = runs.runs[-1] if runs.runs else None
    return last is None or (turns.newest >= last.until and now - last.at >= every)
