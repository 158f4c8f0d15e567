"""Compare the ranking with cosine alone, and with cosine and BM25 joined by reciprocal ranks, set by set, kind by kind.

A request that has no words to match relies on meaning: nowhere may the ranking find less than a plain vector store.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from training.ranking.conversations import CATEGORIES, Conversation
from training.ranking.feature_list import list_features
from training.ranking.fitting import Floats
from training.ranking.measuring import format_percent
from training.ranking.report import Quality
from training.ranking.samples import Sample
from training.ranking.validation import Recalls, recall_at_k

RANK_OFFSET = 60
"""The constant of reciprocal rank fusion: Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion" (2009)."""

NAMES = list_features("tokens")


class GuardRow(NamedTuple):
    """The recall of one kind of question of one set."""

    set_name: str
    kind: str
    cosine: Recalls
    fused: Recalls
    product: Recalls


def own_rows(quality: Quality, assistant: Sequence[Conversation]) -> list[GuardRow]:
    """Return the rows of our own conversations, each question ranked by weights that have not seen its conversation."""
    with_assistant = {one.name for one in assistant}
    is_long = np.array([sample.conversation in with_assistant for sample in quality.samples])
    rows = []
    for name, mask in (("own, short turns", ~is_long), ("own, an assistant", is_long)):
        samples = [quality.samples[place] for place in np.flatnonzero(mask).tolist()]
        rows += rows_of(name, samples, quality.recalls[mask])
    return rows


def rows_of(set_name: str, samples: Sequence[Sample], product: Recalls) -> list[GuardRow]:
    """Return the rows of a set: all questions first, then each kind."""
    cosine, fused = recall_at_k(samples, _cosine), recall_at_k(samples, _fused)
    kinds = np.array([one.question.labelled.kind or CATEGORIES[one.question.labelled.category] for one in samples])
    masks = [("all", np.ones(len(kinds), np.bool_)), *((str(kind), kinds == kind) for kind in sorted(set(kinds)))]
    return [GuardRow(set_name, kind, cosine[mask], fused[mask], product[mask]) for kind, mask in masks]


def format_guard(rows: Sequence[GuardRow]) -> str:
    """Return a table, R@5 / R@10 in per cent."""
    lines = ["| set | kind | questions | cosine | cosine and BM25 | product |", "| --- | --- | --- | --- | --- | --- |"]
    for one in rows:
        cells = map(format_percent, (one.cosine, one.fused, one.product))
        lines.append(f"| {one.set_name} | {one.kind} | {len(one.product)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cosine(sample: Sample) -> Floats:
    """Return the cosines of whole texts, on the scale of their feature."""
    found: Floats = (_column(sample, "dense") + _column(sample, "whole")).round(6)
    return found


def _fused(sample: Sample) -> Floats:
    by_meaning, by_words = _ranks(_cosine(sample)), _ranks(_column(sample, "words"))
    return 1.0 / (RANK_OFFSET + 1 + by_meaning) + 1.0 / (RANK_OFFSET + 1 + by_words)


def _column(sample: Sample, name: str) -> Floats:
    return sample.features[:, NAMES.index(name)].astype(np.float64)


def _ranks(values: Floats) -> Floats:
    """Return ranks from 0, the greatest first."""
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return ranks
