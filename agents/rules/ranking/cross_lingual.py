"""Cross-lingual search: find memories in another language than the question, and merge the results of two models. Pure.

English is embedded by one model, other languages by a second. Scores of a model are meaningless for vectors of the
other, so each memory is scored by the model that embedded it. Masks have shape (memories,), by number. Results of a
single model are returned unchanged.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.text.languages import ENGLISH_INDEX
from schemas.models.vectors import Scored

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
    for one in memory_ids:
        if one in numbers:
            groups[bool(is_other_language[numbers[one]])].append(one)
    return groups


def merge_cross_lingual(
    found: Mapping[bool, Sequence[Scored]], columns: MemoryColumns, *, foreign: bool, bias: float, limit: int
) -> Sequence[Scored]:
    """Merge results keyed by whether they are cross-lingual; best first, ties by id.

    With two results, each contributes only the memories that its model embedded.
    """
    if True not in found:
        return found[False]
    merged: list[Scored] = []
    for is_cross_lingual, scored in found.items():
        own = set(split_by_language((one.memory_id for one in scored), columns, foreign=foreign)[is_cross_lingual])
        offset = bias if is_cross_lingual else 0.0
        merged += [_with_bias(one, offset) for one in scored if len(found) == 1 or one.memory_id in own]
    return sorted(merged, key=lambda one: (-one.score, one.memory_id))[:limit]


def _with_bias(one: Scored, bias: float) -> Scored:
    return Scored(one.memory_id, min(one.score + bias, MAX_BIASED_SCORE)) if bias else one
