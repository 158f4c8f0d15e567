"""Usage of modes since this worker started, as metrics and for `health`: evidence for or against modes."""

from collections import Counter as Counts
from typing import Any

from prometheus_client import CollectorRegistry, Counter

from schemas.modes import ModeSource
from schemas.retrieval import Strategy


class Usage:
    """Counts turns by the source of their mode, agreement of models, corrections by users, and search strategies."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._decided = Counter(
            "modestream_modes_decided", "Turns with a mode, by its source.", ["source"], registry=registry
        )
        self._answered = Counter(
            "modestream_model_modes", "Modes from models, by agreement with the default.", ["agrees"], registry=registry
        )
        self._corrected = Counter(
            "modestream_corrections", "Memories moved to another mode by command.", registry=registry
        )
        self._retrieved = Counter(
            "modestream_retrieved", "Retrieve requests answered, by strategy.", ["strategy"], registry=registry
        )
        self._counts: Counts[str] = Counts()

    def decided(self, source: ModeSource) -> None:
        """Count a turn by the source of its mode."""
        self._decided.labels(source).inc()
        self._counts["decided"] += 1

    def model_answered(self, *, agrees: bool) -> None:
        """Count a model's choice; `agrees`: it equals the mode that the turn would have had without the model."""
        self._answered.labels(str(agrees).lower()).inc()
        self._counts["answered"] += 1
        self._counts["agreed"] += agrees

    def corrected(self) -> None:
        """Count a memory moved to another mode by command."""
        self._corrected.inc()
        self._counts["corrected"] += 1

    def retrieved(self, strategy: Strategy) -> None:
        """Count an answered retrieve request."""
        self._retrieved.labels(strategy).inc()
        self._counts["retrieved"] += 1
        self._counts["cross_mode"] += strategy == "cross_mode"

    def __call__(self) -> dict[str, Any]:
        """Return shares in 0..1, None without any counts."""
        return {
            "cross_mode_share": self._share("cross_mode", "retrieved"),
            "model_agreement": self._share("agreed", "answered"),
            "worker_corrections_per_hundred": self._share("corrected", "decided", 100),
        }

    def _share(self, part: str, whole: str, of: int = 1) -> float | None:
        return round(of * self._counts[part] / self._counts[whole], 4) if self._counts[whole] else None
