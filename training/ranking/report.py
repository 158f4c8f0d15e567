"""The report on the weights: how they were made, and what they find where they have not seen the conversation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.rules.ranking.query_features import ModelVariant
from training.ranking.conversations import CATEGORIES, Conversation
from training.ranking.fitting import ROWS, STRENGTH
from training.ranking.measuring import percent
from training.ranking.samples import BY_HAND, Sample
from training.ranking.validation import FOLDS, Recalls

MOST_SHOWN = 25
"""Weights of a head that are shown."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Recalls of the questions, by weights that have not seen their conversations."""

    head: ModelVariant
    samples: Sequence[Sample]
    recalls: Recalls


def document(conversations: Sequence[Conversation], qualities: Sequence[Quality], weights: str, tried: str) -> str:
    """The whole report."""
    turns = sum(len(one.turns) for one in conversations)
    questions = sum(len(one.questions) for one in conversations)
    how = (
        f"`make train-ranking` fits the weights of `agents/data/ranking_weights.json` on {len(conversations)} "
        f"conversations of our own ({turns:,} turns, {questions:,} questions), through the code that answers requests. "
        f"Loss: softmax over the {ROWS} most likely memories of each question, L2 of {STRENGTH:g}, Newton's method. "
        f"Every conversation is a user of its own, and once more one of several of a larger user. "
        f"By hand: {', '.join(f'{name} {value}' for name, value in BY_HAND.items())}. "
        f"Figures are R@5 / R@10: the share of the evidence among the first hits, in per cent, each question ranked by "
        f"weights that have not seen its conversation ({FOLDS} folds)."
    )
    parts = ["# How hits are ranked, and what that finds", how]
    parts += [f"## Head `{one.head}`\n\n{table_of(one)}" for one in qualities]
    parts += ["## The greatest weights", *(_weights(head, one) for head, one in json.loads(weights).items()), tried]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def table_of(quality: Quality) -> str:
    """Recall by conversation and by kind of question."""
    names = np.array([one.conversation for one in quality.samples])
    categories = np.array([one.question.asked.category for one in quality.samples])
    rows = [
        ("**all**", np.ones(len(names), np.bool_)),
        *((name, names == name) for name in sorted(set(names.tolist()))),
    ]
    kinds = [name for place, name in CATEGORIES.items() if (categories == place).any()]
    lines = [
        f"| {quality.head} | all | {' | '.join(kinds)} |",
        f"| --- | {' | '.join('---' for _ in ['all', *kinds])} |",
    ]
    for name, mask in rows:
        cells = [percent(quality.recalls[mask])]
        for place, kind in CATEGORIES.items():
            if kind in kinds:
                both = mask & (categories == place)
                cells.append(percent(quality.recalls[both]) if both.any() else "-")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _weights(name: str, head: dict[str, dict[str, float]]) -> str:
    shown = list(head["weights"].items())[:MOST_SHOWN]
    told = ", ".join(f"`{signal}` {weight:+.2f}" for signal, weight in shown)
    return f"`{name}` ({len(head['weights'])} signals): {told}."
