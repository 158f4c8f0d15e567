"""Measure the recall of ranking weights, through the product's ranking code."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from agents.rules.ranking.features import RankingWeights
from agents.rules.ranking.memory_features import MODEL_VARIANTS, ModelVariant
from agents.rules.ranking.ranking import Ranking, rank_memories
from training.ranking.conversations import CATEGORIES, Conversation
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


PROJECT_SAMPLES = 2000
"""Resamplings of the conversations, for an interval of 95 per cent."""


def measure_projects(
    weights: RankingWeights, users: Iterable[tuple[Sequence[Conversation], Iterable[Question]]]
) -> Iterator[str]:
    """Yield the effect of the preference for a project where each conversation of a user is one.

    Each question is asked in the project of its evidence, then in another one. Differences of recall in points, with an
    interval by conversation.
    """
    rows: list[tuple[str, list[list[float]]]] = []
    for conversations, questions in users:
        # Memories are numbered in the order of the turns.
        projects = np.repeat(np.arange(len(conversations)), [len(each.turns) for each in conversations])
        names = [each.name for each in conversations]
        for question in questions:
            ranking = rank_memories(question.query_features, question.admitted, weights.models["tokens"])
            own = names.index(question.conversation)
            preferring = [
                ranking.with_project(projects[ranking.numbers] == project) for project in (own, (own + 1) % len(names))
            ]
            recalls = [_recall(each, question) for each in (ranking, *preferring)]
            rows.append((question.conversation, recalls))
    found = np.array([recalls for _, recalls in rows])
    yield f"{len(rows)} questions, without a preference {format_percent(found[:, 0])}"
    groups = [np.flatnonzero([of == name for of, _ in rows]) for name in sorted({of for of, _ in rows})]
    random = np.random.default_rng(0)
    for place, asked in ((1, "its own project"), (2, "another project")):
        gains = 100 * (found[:, place] - found[:, 0])
        drawn = [
            gains[np.concatenate([groups[one] for one in random.integers(len(groups), size=len(groups))])].mean(axis=0)
            for _ in range(PROJECT_SAMPLES)
        ]
        low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
        parts = zip(KS, gains.mean(axis=0), low, high, strict=True)
        said = ", ".join(f"recall@{k} {mean:+.1f} ({least:+.1f} to {most:+.1f})" for k, mean, least, most in parts)
        yield f"asked in {asked}: {said}"


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
    return _recall(rank_memories(query_features, question.admitted, weights.models[variant]), question)


def _recall(ranking: Ranking, question: Question) -> list[float]:
    ids = {number: f"{number:09d}" for number in range(len(question.query_features.columns.live))}
    first = [int(ranking.numbers[place]) in question.evidence for place in ranking.best(max(KS), ids)]
    return [sum(first[:k]) / max(question.labelled.named, 1) for k in KS]
