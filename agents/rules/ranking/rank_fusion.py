"""Fuse the results of several vector spaces and of two languages without comparing cosines across spaces. Pure.

All features but those from vectors mean the same in every space and are used unchanged. A vector score is replaced by
the normal score of its rank within the space: the expected number of standard deviations above the mean for that rank,
for normally distributed scores. So the first of a thousand counts more than the first of ten, for any model.

English is embedded by one model, other languages by a second. Scores of a model are meaningless for vectors of the
other, so each memory is scored by the model that embedded it. Masks have shape (memories,), by number. Results of a
single model are returned unchanged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from modestream_client.vocabulary import Strategy

from agents.rules.index.columns import FloatArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.plans import ModeSearch
from agents.rules.ranking.ranking import SCORE_DECIMALS
from agents.rules.text.languages import ENGLISH_INDEX
from schemas.models.vectors import Nearest, Scored

DENSE_STD = 0.1
"""Standard deviation of normal scores on the scale of cosines: about that of one question's cosines, 0.09 on our chats,
so the ranking weights apply. Values from 0.08 to 0.12 lose nothing there."""

MAXSIM_STD = 0.07
DENSE_MEAN, MAXSIM_MEAN = 0.2, 0.45
"""Mean of one question's cosines and of its late interaction scores on our chats: the value of a normal score of 0."""

MAX_TOPIC_CANDIDATES = 100
"""Best memories for which topics are read: a topic is a tiebreaker, and is stored in the record."""

ModeSearchStatus = Literal["empty", "not_indexed", "unavailable", "ok"]
"""No memories; memories without vectors; vectors that can't be queried; vectors that were queried."""

FusionMethod = Literal["weighted_mean", "rank_fusion", "lexical_merge"]
"""Scores of a single mode search; ranks of several; several without vectors."""

SCORE_EPSILON = 1e-9
"""Avoids a division by zero if no memory has a score."""

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class ModeSearchResult:
    """Result of one mode search: `found`, the nearest by cosine, best first; or `missing`, the reason for no result.

    `space` is the digest of the vector space, `count` the number of its memories that match the filter. `maxsim` are
    the best by late interaction, if the space has token vectors; `passages` are the cut texts with the nearest
    passages. `read_passages` and `read_tokens` are the results of each of the question's models for these, with all
    passages that were compared.
    """

    mode_search: ModeSearch
    status: ModeSearchStatus
    space: str = ""
    count: int = 0
    found: Sequence[Scored] = ()
    maxsim: Sequence[Scored] = ()
    passages: Sequence[Scored] = ()
    read_passages: Sequence[Nearest] = ()
    read_tokens: Sequence[Nearest] = ()
    missing: str | None = None


class ScoreKind(NamedTuple):
    """A kind of vector score: its selector, and the mean and deviation of one question's values on our chats."""

    select: Callable[[ModeSearchResult], Sequence[Scored]]
    mean: float
    std: float


DENSE_KIND = ScoreKind(lambda result: result.found, DENSE_MEAN, DENSE_STD)
PASSAGE_KIND = ScoreKind(lambda result: result.passages, DENSE_MEAN, DENSE_STD)
MAXSIM_KIND = ScoreKind(lambda result: result.maxsim, MAXSIM_MEAN, MAXSIM_STD)


def choose_fusion_method(statuses: Sequence[ModeSearchStatus]) -> FusionMethod:
    """Choose how to fuse mode searches with these statuses.

    If one search is unavailable, no vectors are used at all: its memories would rank behind everything that is similar
    in the other spaces.
    """
    if len(statuses) == 1:
        return "weighted_mean"
    if "unavailable" in statuses or ("not_indexed" in statuses and "ok" not in statuses):
        return "lexical_merge"
    return "rank_fusion"


def strategy_of(statuses: Sequence[ModeSearchStatus]) -> Strategy:
    """Return the strategy that the answer reports."""
    if len(statuses) > 1:
        return "cross_mode"
    return "lexical" if statuses[0] in ("not_indexed", "unavailable") else "hybrid"


@dataclass(frozen=True, slots=True)
class VectorScores:
    """Vector scores by number, None without usable vectors; estimates for memories that are not `embedded`.

    `dense` are cosines, of a cut text that of its best passage; `whole` are cosines of whole texts.
    """

    embedded: Mask
    dense: FloatArray | None = None
    whole: FloatArray | None = None
    maxsim: FloatArray | None = None


def fuse_vector_scores(
    mode_results: Sequence[ModeSearchResult],
    method: FusionMethod,
    columns: MemoryColumns,
    admitted: Mask,
    lexical_scores: FloatArray,
) -> VectorScores:
    """Return one vector score per memory; vectors of an outdated text are ignored.

    `lexical_scores` rates the match of words. It estimates the scores of memories without a vector, the best match by
    words getting the best vector score: otherwise a turn that was just written would rank behind all similar ones.
    """
    searched = [result for result in mode_results if result.status == "ok"]
    if method == "lexical_merge" or not searched:
        return VectorScores(np.zeros(len(admitted), np.bool_))
    embedded = np.logical_or.reduce([columns.embedded(space) for space in {result.space for result in searched}])
    estimate = lexical_scores / max(float(lexical_scores[admitted].max(initial=0.0)), SCORE_EPSILON)

    def scores(kind: ScoreKind) -> FloatArray:
        dense = _scores_of_kind(kind, searched, method, columns, admitted)
        # Memories without a score get the estimate, in 0..1, mapped to the range of the scores.
        scored = dense[embedded]
        if not len(scored):
            return np.zeros(len(dense))
        least, greatest = scored.min(), scored.max()
        missing = np.flatnonzero(~embedded)
        filled = dense.copy()
        filled[missing] = least + np.clip(estimate[missing], 0.0, 1.0) * (greatest - least)
        return filled

    maxsim = scores(MAXSIM_KIND) if any(result.maxsim for result in searched) else None
    whole = scores(DENSE_KIND)
    # Cosines with those of cut texts replaced by the cosines of their best passages, where these are known.
    eligible = admitted & embedded
    if not any(result.passages for result in searched):
        dense = whole
    else:
        numbers = [columns.derived().numbers_of(Nearest.of(result.passages)) for result in searched]
        has_passages = np.zeros(len(whole) + 1, np.bool_)
        has_passages[np.concatenate(numbers)] = True
        has_passages = has_passages[:-1] & eligible
        dense = np.where(has_passages, _scores_of_kind(PASSAGE_KIND, searched, method, columns, eligible), whole)
    return VectorScores(embedded, dense=dense, whole=whole, maxsim=maxsim)


def _scores_of_kind(
    kind: ScoreKind, results: Sequence[ModeSearchResult], method: FusionMethod, columns: MemoryColumns, admitted: Mask
) -> FloatArray:
    """Return scores of one kind; in a space without token vectors, cosine ranks stand in for late interaction."""
    if method == "weighted_mean":
        return scatter_scores(kind.select(results[0]), columns)
    eligible = {space: admitted & columns.embedded(space) for space in {result.space for result in results}}
    numbers = columns.number_of
    by_space: list[FloatArray] = []
    for result in results:
        of_space = eligible[result.space]
        current = [
            memory
            for memory in kind.select(result) or result.found
            if memory.memory_id in numbers and of_space[numbers[memory.memory_id]]
        ]
        by_space.append(scatter_scores(normal_scores(current, result.count), columns, missing_score=0.0))
    best: FloatArray = np.maximum.reduce(by_space)
    return kind.mean + best * (kind.std / DENSE_STD)


def scatter_scores(scored: Sequence[Scored], columns: MemoryColumns, missing_score: float | None = None) -> FloatArray:
    """Return scores by number; memories not found get `missing_score`, by default the lowest score found."""
    size, nearest = len(columns.columns.live), Nearest.of(scored)
    numbers = columns.derived().numbers_of(nearest)
    if missing_score is None:
        missing_score = float(nearest.scores.min()) if len(nearest) else 0.0
    by_number = np.full(size + 1, missing_score)
    by_number[numbers] = nearest.scores
    return by_number[:size]


def normal_scores(scored: Sequence[Scored], count: int) -> list[Scored]:
    """Replace cosines by normal scores of their ranks, times `DENSE_STD`, clipped to 0..1.

    `scored` are the nearest of `count` memories, best first. Equal cosines share a rank. The score of rank r of n is
    the normal quantile of 1 - (r - 3/8) / (n + 1/4): Blom, "Statistical Estimates and Transformed Beta-Variables"
    (1958).
    """
    size = max(count, len(scored)) + 0.25
    scores = [DENSE_STD * _NORMAL.inv_cdf(1 - (rank - 0.375) / size) for rank in _ranks(scored)]
    return [Scored(memory.memory_id, min(max(score, 0.0), 1.0)) for memory, score in zip(scored, scores, strict=True)]


def topic_share(question: Sequence[str], topic: Sequence[str]) -> float:
    """Return the share of a topic's terms that a question names, 0 without a topic."""
    return len(set(question).intersection(topic)) / len(set(topic)) if topic else 0.0


def _ranks(scored: Sequence[Scored]) -> list[float]:
    """Return ranks from 1; ties get the mean of their ranks."""
    if len(scored) == 1:
        return [1.0]
    descending = -np.round([memory.score for memory in scored], SCORE_DECIMALS)
    _, group, sizes = np.unique(descending, return_inverse=True, return_counts=True)
    middles = np.cumsum(sizes) - (sizes - 1) / 2
    ranks: list[float] = middles[group].tolist()
    return ranks


MIN_OTHER_LANGUAGE_SHARE, MIN_OTHER_LANGUAGE_COUNT = 0.01, 10
"""Query the second model only above this share, or from this count on: fewer memories are quotes and misdetections,
and the multilingual model takes 8 ms more per question."""


class ScoreBias(NamedTuple):
    """Offsets added to a memory's cosine and to its MaxSim score."""

    dense: float
    maxsim: float


CROSS_LINGUAL_BIAS: Mapping[bool, ScoreBias] = {False: ScoreBias(0.11, 0.0), True: ScoreBias(0.11, 0.06)}
"""Offsets of cross-lingual scores, by whether the question is foreign (not English): the difference between the mean
score over memories in the question's language and over those in another. Without it the best matches rank below merely
similar memories. Means of 95 questions (`docs/ranking_report.md`)."""

MAX_BIASED_SCORE = 1.0
"""Upper bound of a score after the offset: that of identical texts."""


def other_language_mask(columns: MemoryColumns, *, foreign: bool) -> Mask:
    """Return the memories in a language that the question's model does not read.

    For a foreign question: only memories detected as English. Texts too short to detect were embedded by the English
    model too, but it scores all non-English text alike, so they are left out.
    """
    if not foreign:
        return columns.non_english()
    english: Mask = columns.columns.languages == ENGLISH_INDEX
    return ~columns.non_english() & english


def is_worth_asking(other_language_count: int, total: int) -> bool:
    """Return whether enough memories are in another language to query the second model."""
    return other_language_count > 0 and (
        other_language_count >= MIN_OTHER_LANGUAGE_COUNT or other_language_count > MIN_OTHER_LANGUAGE_SHARE * total
    )


def split_by_language(memory_ids: Iterable[str], columns: MemoryColumns, *, foreign: bool) -> Mapping[bool, list[str]]:
    """Group memories by whether they are in another language; the order is kept, unknown ids are dropped."""
    numbers, is_other_language = columns.number_of, other_language_mask(columns, foreign=foreign)
    groups: dict[bool, list[str]] = {False: [], True: []}
    for memory_id in memory_ids:
        if memory_id in numbers:
            groups[bool(is_other_language[numbers[memory_id]])].append(memory_id)
    return groups


def merge_cross_lingual(
    results: Mapping[bool, Sequence[Scored]], columns: MemoryColumns, *, foreign: bool, bias: float, limit: int
) -> Sequence[Scored]:
    """Merge results keyed by whether they are cross-lingual; best first, ties by id.

    With two results, each contributes only the memories that its model embedded.
    """
    if True not in results:
        return results[False]
    merged: list[Scored] = []
    for is_cross_lingual, scored in results.items():
        readable = set(
            split_by_language((memory.memory_id for memory in scored), columns, foreign=foreign)[is_cross_lingual]
        )
        offset = bias if is_cross_lingual else 0.0
        embedded = [memory for memory in scored if len(results) == 1 or memory.memory_id in readable]
        merged += (
            Scored(memory.memory_id, min(memory.score + offset, MAX_BIASED_SCORE)) if offset else memory
            for memory in embedded
        )
    return sorted(merged, key=lambda memory: (-memory.score, memory.memory_id))[:limit]
