"""What a consolidation is about, wherever it is decided or carried out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from schemas.consolidation import Trigger


@dataclass(frozen=True, slots=True)
class Run:
    """One run: a trigger, and the turns before `until` of its partition, as they are at `at`."""

    run: str
    trigger: Trigger
    partition: int
    until: int
    at: datetime

    @property
    def scope(self) -> Mapping[str, str]:
        """The scope as records have it."""
        return self.trigger.scope.model_dump()
