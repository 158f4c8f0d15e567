"""Assess whether the deployment's classifications of interaction modes can be trusted as usual.

Enters: the counts of all partitions that this worker serves, which survive a restart. Leaves: a `Stability`.
"""

from collections.abc import Callable, Iterable

from agents.ports.clock import Clock
from agents.rules.interaction.stability import Stability, assess_stability, week_of
from schemas.state.interaction_counts import InteractionCounts


class AssessStability:
    """Counts in, stability out. Writes nothing."""

    def __init__(self, counts: Callable[[], Iterable[InteractionCounts]], clock: Clock) -> None:
        """`counts` reads those of every served partition."""
        self._counts = counts
        self._clock = clock

    def __call__(self) -> Stability:
        """Return the stability now."""
        return assess_stability(self._counts(), week_of(self._clock.now()))
