"""The report on the ranking weights: the method, cross-validated recall, the greatest weights, experiments."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.rules.ranking.memory_features import MODEL_VARIANTS, ModelVariant
from training.ranking.conversations import CATEGORIES, Conversation
from training.ranking.fitting import L2_STRENGTH, MAX_FITTED_ROWS
from training.ranking.measuring import format_percent
from training.ranking.samples import BY_HAND, Sample
from training.ranking.validation import FOLDS, Recalls

MAX_SHOWN_WEIGHTS = 25
"""Weights shown per model."""


GUARD = """R@5 / R@10 of the same texts and vectors: by the cosine of whole texts alone, by that and BM25 joined by \
reciprocal ranks, and by the ranking (variant `tokens`). Our own conversations by weights that have not seen them; \
nothing is fitted to LoCoMo and BEAM."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Cross-validated recall of one model variant."""

    variant: ModelVariant
    samples: Sequence[Sample]
    recalls: Recalls


def format_report(
    conversations: Sequence[Conversation], qualities: Sequence[Quality], guard: str, weights: str, experiments: str
) -> str:
    """Return the report as Markdown."""
    turns = sum(len(one.turns) for one in conversations)
    questions = sum(len(one.questions) for one in conversations)
    how = (
        f"`make train-ranking` fits the weights of `agents/data/ranking_weights.json` on {len(conversations)} "
        f"conversations of our own ({turns:,} turns, {questions:,} questions), through the code that answers requests. "
        f"Loss: softmax over the {MAX_FITTED_ROWS} most likely memories of each question, "
        f"L2 of {L2_STRENGTH:g}, Newton's method. "
        f"Every conversation is a user of its own, and once more one of several of a larger user; those with an "
        f"assistant, whose replies have 1,300 characters and more, also without their sessions. "
        f"By hand: {', '.join(f'{name} {value}' for name, value in BY_HAND.items())}. "
        f"Figures are R@5 / R@10: the share of the evidence among the first hits, in per cent, each question ranked by "
        f"weights that have not seen its conversation ({FOLDS} folds)."
    )
    parts = ["# How hits are ranked, and what that finds", how]
    parts += [f"## Variant `{one.variant}`\n\n{format_table(one)}" for one in qualities]
    parts += [
        f"## Beside a plain vector store\n\n{GUARD}\n\n{guard}",
        "## The greatest weights",
        *(_weights(name, json.loads(weights)[name]) for name in MODEL_VARIANTS),
        experiments,
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def format_table(quality: Quality) -> str:
    """Return a table of recall by conversation and by category of question."""
    names = np.array([one.conversation for one in quality.samples])
    categories = np.array([one.question.labelled.category for one in quality.samples])
    rows = [
        ("**all**", np.ones(len(names), np.bool_)),
        *((name, names == name) for name in sorted(set(names.tolist()))),
    ]
    kinds = [name for place, name in CATEGORIES.items() if (categories == place).any()]
    lines = [
        f"| {quality.variant} | all | {' | '.join(kinds)} |",
        f"| --- | {' | '.join('---' for _ in ['all', *kinds])} |",
    ]
    for name, mask in rows:
        cells = [format_percent(quality.recalls[mask])]
        for place, kind in CATEGORIES.items():
            if kind in kinds:
                both = mask & (categories == place)
                cells.append(format_percent(quality.recalls[both]) if both.any() else "-")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _weights(name: str, model: dict[str, dict[str, float]]) -> str:
    shown = list(model["weights"].items())[:MAX_SHOWN_WEIGHTS]
    weights = ", ".join(f"`{feature}` {weight:+.2f}" for feature, weight in shown)
    return f"`{name}` ({len(model['weights'])} features): {weights}."
