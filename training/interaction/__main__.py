"""`python -m training.interaction`: train, write the model and its report. `--held-out`: measure the shipped model."""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agents.rules.interaction.classifier import InteractionClassifier
from training.interaction.examples import (
    CUES,
    HELD_OUT,
    HELD_OUT_CONVERSATIONS,
    HELD_OUT_HARD,
    HELD_OUT_SESSIONS,
    Turn,
    read_turns,
    training_turns,
)
from training.interaction.fitting import mode_indexes
from training.interaction.report import describe_intents, describe_method, format_folds, format_quality, join_parts
from training.interaction.training import train_classifier
from training.interaction.vectors import Vectors, embed_texts

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "agents" / "data" / "interaction_model.bin"
REPORT = ROOT / "docs" / "interaction_report.md"
NOTES = Path(__file__).parent / "held_out_results.md"


def main() -> None:
    """Train, or measure the shipped model on the held-out examples."""
    parser = argparse.ArgumentParser(prog="python -m training.interaction", description=__doc__)
    parser.add_argument("--held-out", action="store_true", help="measure only; never use it to choose parameters")
    models = Path(os.environ.get("MODESTREAM_MODEL_DIR") or ROOT / ".modestream" / "models")
    if parser.parse_args().held_out:
        print(join_parts(_held_out(models)))  # noqa: T201
    else:
        _train(models)


def _train(models: Path) -> None:
    turns = training_turns()
    vectors = embed_texts([turn.text for turn in turns], models)
    result = train_classifier(turns, vectors, CUES.read_text())
    MODEL.write_bytes(result.model)
    notes = [NOTES.read_text().strip()] if NOTES.exists() else []
    parts = [
        describe_method(turns, result.temperature),
        format_folds(result.shares, result.modes, turns),
        format_quality(result.shares, result.modes, turns),
        f"The model has {len(result.model) / 1e6:.2f} MB.",
        _latency(turns, vectors, result.model),
        describe_intents(turns),
        *_held_out(models),
        *notes,
    ]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(join_parts(parts))
    print(join_parts(parts))  # noqa: T201


def _held_out(models: Path) -> list[str]:
    """Measure the shipped model on each held-out file."""
    classifier = InteractionClassifier.loads(MODEL.read_bytes())
    parts = []
    for title, file in (
        ("Held-out turns", HELD_OUT),
        ("Held-out sessions", HELD_OUT_SESSIONS),
        ("Held-out conversations", HELD_OUT_CONVERSATIONS),
        ("Held-out hard turns", HELD_OUT_HARD),
    ):
        turns = read_turns([file])
        vectors = embed_texts([turn.text for turn in turns], models)
        shares = [classifier.probabilities(turn.text, vector) for turn, vector in zip(turns, vectors, strict=True)]
        parts += [f"## {title}", format_quality(np.array(shares), mode_indexes(turns), turns)]
    return parts


def _latency(turns: Sequence[Turn], vectors: Vectors, model: bytes) -> str:
    """Measure the classifier's processor time per turn, without embedding."""
    classifier = InteractionClassifier.loads(model)
    times_ms = []
    for turn, vector in zip(turns, vectors, strict=True):
        began = time.thread_time()
        classifier.probabilities(turn.text, vector)
        times_ms.append(1000 * (time.thread_time() - began))
    median, p95 = np.percentile(times_ms, [50, 95])
    return (
        f"A turn takes {median:.2f} ms of one core beyond the embedding (median), {p95:.2f} ms at the 95th percentile."
    )


if __name__ == "__main__":
    main()
