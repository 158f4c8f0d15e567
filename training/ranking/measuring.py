"""What the weights find among questions, by the product's own ranking."""

from collections.abc import Iterable, Iterator

import numpy as np

from agents.rules.ranking.query_features import MODEL_VARIANTS, ModelVariant
from agents.rules.ranking.ranking import rank_memories
from agents.rules.ranking.weights import RankingWeights
from training.ranking.conversations import CATEGORIES
from training.ranking.library import Question
from training.ranking.samples import without
from training.ranking.validation import KS, Recalls


def found_by(weights: RankingWeights, questions: Iterable[Question]) -> Iterator[str]:
    """A line for each head, with recall of all and by category."""
    categories: list[int] = []
    found: dict[ModelVariant, list[list[float]]] = {head: [] for head in MODEL_VARIANTS}
    for question in questions:
        categories.append(question.asked.category)
        for head in MODEL_VARIANTS:
            found[head].append(_recalls(weights, question, head))
    for head in MODEL_VARIANTS:
        yield f"{head:8s} {by_category(np.array(found[head]), np.array(categories))}"


def by_category(recalls: Recalls, categories: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    """Recall of all questions, then of each kind, in per cent."""
    parts = {"all": np.ones(len(categories), np.bool_)}
    parts |= {name: categories == place for place, name in CATEGORIES.items() if (categories == place).any()}
    return "  ".join(f"{name} {percent(recalls[mask])}" for name, mask in parts.items())


def percent(recalls: Recalls) -> str:
    """The mean recalls, `81.2 / 87.0`."""
    return " / ".join(f"{100 * value:.1f}" for value in recalls.mean(axis=0))


def _recalls(weights: RankingWeights, question: Question, head: ModelVariant) -> list[float]:
    clues = without(question.clues, head)
    ranking = rank_memories(clues, question.admitted, weights.models[head])
    ids = {number: f"{number:09d}" for number in range(len(clues.columns.live))}
    first = [int(ranking.numbers[place]) in question.evidence for place in ranking.best(max(KS), ids)]
    return [sum(first[:k]) / max(question.asked.named, 1) for k in KS]
