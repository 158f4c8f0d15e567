"""Train the classifier: examples and vectors in, model bytes and figures out. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.rules.interaction.classifier import CueTable, softmax
from training.interaction.calibration import best_temperature
from training.interaction.examples import Turn, digest
from training.interaction.fitting import (
    Floats,
    Labels,
    classifier_arrays,
    feature_matrix,
    fit_regression,
    mode_indexes,
    turn_weights,
)
from training.interaction.model_file import serialise_model
from training.interaction.validation import cross_validated_logits
from training.interaction.vectors import Vectors


@dataclass(frozen=True, slots=True)
class TrainedClassifier:
    """The model file, and its cross-validated predictions; `shares` has shape (turns, 5)."""

    model: bytes
    shares: Floats
    modes: Labels
    temperature: float


def train_classifier(turns: Sequence[Turn], vectors: Vectors, cue_table: str) -> TrainedClassifier:
    """Cross-validate, calibrate on the predictions, and fit to all turns; deterministic."""
    rows, modes = feature_matrix(turns, vectors, CueTable.loads(cue_table)), mode_indexes(turns)
    weights = turn_weights(turns)
    logits = cross_validated_logits(rows, modes, turns)
    temperature = best_temperature(logits, modes, weights)
    shares = softmax(logits * temperature)
    arrays = classifier_arrays(fit_regression(rows, modes, weights), vectors.shape[1], temperature)
    model = serialise_model(arrays, cue_table, digest(turns, cue_table))
    return TrainedClassifier(model, shares, modes, temperature)
