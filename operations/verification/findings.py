"""What a verification has found of one user, and of all."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

MENDED_BY_LOG = ("table_missing", "table_different")
"""Mended by publishing the original record again."""

MENDED_BY_JOBS = ("vectors_missing", "vectors_orphaned", "stale", "pending", "failed")
"""Mended by `reconcile` and `retry_failed`."""

TOLD = ("words_missing", "words_orphaned")
"""Mended by a start without the folder `words`, which is made again from the table."""

GAPS = (*MENDED_BY_LOG, *TOLD, *MENDED_BY_JOBS)
"""All that is amiss; `pending` may be under way."""

MAX_EXAMPLES = 20


@dataclass(slots=True)
class Findings:
    """Counts by name, and some ids of each; `checked` has what was looked at."""

    checked: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, name: str, ids: Sequence[str], count: int | None = None) -> None:
        """Count these, of which `ids` may be a part only."""
        number = len(ids) if count is None else count
        if number:
            self.counts[name] += number
            kept = self.examples.setdefault(name, [])
            kept += list(ids)[: MAX_EXAMPLES - len(kept)]

    def add(self, other: "Findings") -> None:
        """Add those of a user."""
        self.checked += other.checked
        for name, number in other.counts.items():
            self.note(name, other.examples.get(name, []), number)

    def amiss(self, names: Sequence[str] = GAPS) -> int:
        """Count what is amiss."""
        return sum(self.counts[name] for name in names)
