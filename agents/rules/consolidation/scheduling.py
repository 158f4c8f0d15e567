"""Which scopes are due for a consolidation that nobody asked for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from schemas.consolidation import RunHistory
from schemas.memories import Memory

MIN_SCOPE_TURNS = 3
"""Turns below which nothing can be distilled."""


@dataclass(slots=True)
class ScopeTurns:
    """The turns of one scope that stand for themselves: how many, and the offset of the newest."""

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
    """Whether something was said since the last run, and that was long enough ago."""
    if turns.count < MIN_SCOPE_TURNS:
        return False
    last = runs.runs[-1] if runs.runs else None
    return last is None or (turns.newest >= last.until and now - last.at >= every)
