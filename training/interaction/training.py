"""Examples and their vectors into the model's bytes and the figures about it. Nothing is read or written here."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.rules.interaction.classifier import pool_confidences, softmax
from agents.rules.interaction.cues import CueTable
from training.interaction.calibration import best_pool, best_temperature
from training.interaction.examples import Turn, digest
from training.interaction.fitting import Floats, Labels, features, fitted, labels, weights
from training.interaction.model_file import dumps
from training.interaction.validation import unseen_logits
from training.interaction.vectors import Vectors


@dataclass(frozen=True, slots=True)
class Trained:
    """The file, and what its method says of unseen turns: `shares` has shape (turns, 5)."""

    model: bytes
    shares: Floats
    modes: Labels
    temperature: float
    pool: dict[str, float]


def trained(turns: Sequence[Turn], vectors: Vectors, cue_table: str) -> Trained:
    """Validate, calibrate on that, and fit to all turns; the same input gives the same bytes."""
    rows, modes = features(turns, vectors, CueTable.loads(cue_table)), labels(turns)
    logits = unseen_logits(rows, modes, turns)
    temperature = best_temperature(logits, modes)
    own = softmax(logits * temperature)
    pool = best_pool(own, modes)
    kept = weights(fitted(rows, modes), vectors.shape[1], temperature)
    model = dumps(kept, pool, cue_table, digest(turns, cue_table))
    return Trained(model, pool_confidences(own, **pool), modes, temperature, pool)
