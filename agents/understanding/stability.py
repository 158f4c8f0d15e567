"""Assess whether the deployment's classifications of interaction modes can be trusted as usual.

Enters: the counts of all partitions that this worker serves, which survive a restart. Leaves: a `Stability`.
"""

from collections.abc import Callable, Iterable
from operator import is_

from agents.ports.clock import Clock
from agents.rules.interaction.stability import Stability, assess_stability, assume_stable, week_of
from schemas.state.interaction import InteractionCounts


class AssessStability:
    """Counts in, stability out. Writes nothing."""

    def __init__(self, counts: Callable[[], Iterable[InteractionCounts]], clock: Clock) -> None:
        """`counts` reads those of every served partition."""
        self._counts = counts
        self._clock = clock
        self._last: tuple[int, list[InteractionCounts], Stability] = (-1, [], assume_stable())

    def __call__(self) -> Stability:
        """Return the stability now; it is computed again when a count or the week has changed."""
        week, counts = week_of(self._clock.now()), list(self._counts())
        last_week, last, stability = self._last
        if week == last_week and len(counts) == len(last) and all(map(is_, counts, last)):
            return stability
        self._last = (week, counts, assess_stability(counts, week))
        return self._last[2]
