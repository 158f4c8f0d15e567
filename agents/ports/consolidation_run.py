"""What a consolidation is about and what it may take, wherever it is decided or carried out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from schemas.consolidation import ConsolidationTrigger


@dataclass(frozen=True, slots=True)
class ConsolidationRun:
    """One run: a trigger, and the turns before `until` of its partition, as they are at `at`."""

    run: str
    trigger: ConsolidationTrigger
    partition: int
    until: int
    at: datetime

    @property
    def scope(self) -> Mapping[str, str]:
        """The scope as records have it."""
        return self.trigger.scope.model_dump()


class Allowance(Protocol):
    """What one run may still take."""

    def is_over(self) -> bool:
        """Whether its time is over."""
        ...

    def may_spend(self, tokens: int) -> bool:
        """Whether so many tokens of language models may still be asked for."""
        ...

    def spend(self, tokens: int) -> None:
        """Note that so many tokens were asked for."""
        ...


class Unbounded:
    """An allowance that never ends: for what somebody waits for."""

    def is_over(self) -> bool:
        """Never."""
        return False

    def may_spend(self, tokens: int) -> bool:  # noqa: ARG002 - as the port has it
        """Always."""
        return True

    def spend(self, tokens: int) -> None:
        """Nobody counts."""


UNBOUNDED = Unbounded()
"""The one that there is."""
