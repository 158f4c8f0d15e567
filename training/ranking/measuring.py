"""Measure the recall of ranking weights, through the product's ranking code."""

from collections.abc import Iterable, Iterator

import numpy as np

from agents.rules.ranking.features import RankingWeights
from agents.rules.ranking.memory_features import MODEL_VARIANTS, ModelVariant
from agents.rules.ranking.ranking import rank_memories
from training.ranking.conversations import CATEGORIES
from training.ranking.library import Question
from training.ranking.samples import restrict_to_variant
from training.ranking.validation import KS, Recalls


def measure_recall(weights: RankingWeights, questions: Iterable[Question]) -> Iterator[str]:
    """Yield a line for each model variant, with the recall of all questions and by category."""
    categories: list[int] = []
    found: dict[ModelVariant, list[list[float]]] = {variant: [] for variant in MODEL_VARIANTS}
    for question in questions:
        categories.append(question.labelled.category)
        for variant in MODEL_VARIANTS:
            found[variant].append(_recalls(weights, question, variant))
    for variant in MODEL_VARIANTS:
        yield f"{variant:8s} {format_by_category(np.array(found[variant]), np.array(categories))}"


def format_by_category(recalls: Recalls, categories: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    """Format the recall of all questions, then of each category, in per cent."""
    parts = {"all": np.ones(len(categories), np.bool_)}
    parts |= {name: categories == place for place, name in CATEGORIES.items() if (categories == place).any()}
    return "  ".join(f"{name} {format_percent(recalls[mask])}" for name, mask in parts.items())


def format_percent(recalls: Recalls) -> str:
    """Format mean recalls, `81.2 / 87.0`."""
    return " / ".join(f"{100 * value:.1f}" for value in recalls.mean(axis=0))


def _recalls(weights: RankingWeights, question: Question, variant: ModelVariant) -> list[float]:
    query_features = restrict_to_variant(question.query_features, variant)
    ranking = rank_memories(query_features, question.admitted, weights.models[variant])
    ids = {number: f"{number:09d}" for number in range(len(query_features.columns.live))}
    first = [int(ranking.numbers[place]) in question.evidence for place in ranking.best(max(KS), ids)]
    return [sum(first[:k]) / max(question.labelled.named, 1) for k in KS]
