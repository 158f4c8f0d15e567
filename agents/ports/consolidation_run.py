"""The input and the budget of a consolidation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from schemas.internal.consolidation import ConsolidationTrigger


@dataclass(frozen=True, slots=True)
class ConsolidationRun:
    """One run: a trigger, and the turns of its partition before offset `until`, as of the time `at`.

    `has_ended` is true if its trigger is delivered again after its end: it changes nothing, and is answered again.
    """

    run: str
    trigger: ConsolidationTrigger
    partition: int
    until: int
    at: datetime
    has_ended: bool = False

    @property
    def scope(self) -> Mapping[str, str]:
        """The scope in the form of records."""
        return self.trigger.scope.model_dump()


class Allowance(Protocol):
    """The remaining budget of one run."""

    def is_over(self) -> bool:
        """True if its time is over."""

    def may_spend(self, tokens: int) -> bool:
        """True if the budget still allows this number of language model tokens."""

    def spend(self, tokens: int) -> None:
        """Subtract used tokens from the budget."""


class Unbounded:
    """An unlimited budget, for requests that a caller waits for."""

    def is_over(self) -> bool:
        """Return False."""
        return False

    def may_spend(self, tokens: int) -> bool:  # noqa: ARG002 - as the port has it
        """Return True."""
        return True

    def spend(self, tokens: int) -> None:
        """Do nothing."""


UNBOUNDED = Unbounded()
