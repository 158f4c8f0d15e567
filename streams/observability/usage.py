"""How modes are used: the numbers by which one would give up on them (seed 000, what would kill this idea).

Counted since this worker started, as metrics and for `health`.
"""

from collections import Counter as Counts
from typing import Any

from prometheus_client import CollectorRegistry, Counter

from schemas.modes import ModeSource
from schemas.retrieval import Strategy


class Usage:
    """Counts turns by who chose their mode, what models and people thought of that, and how modes are searched."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._decided = Counter(
            "modestream_modes_decided", "Turns that got a mode, by who decided.", ["source"], registry=registry
        )
        self._answered = Counter(
            "modestream_model_modes", "Models' modes, by agreement with the default.", ["agrees"], registry=registry
        )
        self._corrected = Counter(
            "modestream_corrections", "Memories put into another mode by command.", registry=registry
        )
        self._retrieved = Counter(
            "modestream_retrieved", "Retrieve requests answered, by strategy.", ["strategy"], registry=registry
        )
        self._counts: Counts[str] = Counts()

    def decided(self, source: ModeSource) -> None:
        """A turn got a mode."""
        self._decided.labels(source).inc()
        self._counts["decided"] += 1

    def model_answered(self, *, agrees: bool) -> None:
        """A model chose a mode; whether it is the one that the turn would have had without it."""
        self._answered.labels(str(agrees).lower()).inc()
        self._counts["answered"] += 1
        self._counts["agreed"] += agrees

    def corrected(self) -> None:
        """A memory was put into another mode by command."""
        self._corrected.inc()
        self._counts["corrected"] += 1

    def retrieved(self, strategy: Strategy) -> None:
        """A retrieve request was answered."""
        self._retrieved.labels(strategy).inc()
        self._counts["retrieved"] += 1
        self._counts["cross_mode"] += strategy == "cross_mode"

    def __call__(self) -> dict[str, Any]:
        """Shares in 0..1, None where nothing was counted yet."""
        return {
            "cross_mode_share": self._share("cross_mode", "retrieved"),
            "model_agreement": self._share("agreed", "answered"),
            "worker_corrections_per_hundred": self._share("corrected", "decided", 100),
        }

    def _share(self, part: str, whole: str, of: int = 1) -> float | None:
        return round(of * self._counts[part] / self._counts[whole], 4) if self._counts[whole] else None
