"""A question in one language and memories in another: which these are, and how their likenesses stand beside others.

Enters: a roster, and what models found. Leaves: masks of shape (memories,), by number, and one order. Pure.
Guaranteed: where no question crosses, what was found is left as it is. A model can only be asked about vectors that it
made; what it says of others is chance.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.text.languages import ENGLISH_INDEX
from schemas.vectors import Scored

MIN_OTHER_LANGUAGE_SHARE, MIN_OTHER_LANGUAGE_COUNT = 0.01, 10
"""Memories in another language are asked about when they are more than this share, or so many: below are quotes and
mistakes, which are no reason for each question to wait for a second model, 8 ms more for the multilingual one."""


class ScoreBias(NamedTuple):
    """What is added to a memory's cosine and to its late interaction."""

    dense: float
    maxsim: float


CROSS_LINGUAL_BIAS: Mapping[bool, ScoreBias] = {False: ScoreBias(0.11, 0.0), True: ScoreBias(0.11, 0.06)}
"""For questions that cross, by whether they are foreign. The mean over all memories in another language lies so much
below that over memories in the question's own; not raised, the best of them stand behind what is merely alike. Means
of 95 questions (`docs/ranking_report.md`)."""

MAX_BIASED_SCORE = 1.0
"""No likeness is raised above that of equals."""


def other_language_mask(roster: MemoryColumns, *, foreign: bool) -> Mask:
    """The memories in a language that the model of such questions does not read.

    For a foreign question these are the ones that are known to be English. What is too short to tell was embedded by
    the English model as well, which finds all alike that is not English: it is left to chance.
    """
    if not foreign:
        return roster.foreign()
    english: Mask = roster.columns.languages == ENGLISH_INDEX
    return ~roster.foreign() & english


def is_worth_asking(other_language_count: int, total: int) -> bool:
    """Whether there are enough memories in another language to ask about them."""
    return other_language_count > 0 and (
        other_language_count >= MIN_OTHER_LANGUAGE_COUNT or other_language_count > MIN_OTHER_LANGUAGE_SHARE * total
    )


def split_by_language(memory_ids: Iterable[str], roster: MemoryColumns, *, foreign: bool) -> Mapping[bool, list[str]]:
    """These memories by whether they are unlike such a question, in their order; who is not there is in neither."""
    numbers, elsewhere = roster.number_of, other_language_mask(roster, foreign=foreign)
    parts: dict[bool, list[str]] = {False: [], True: []}
    for one in memory_ids:
        if one in numbers:
            parts[bool(elsewhere[numbers[one]])].append(one)
    return parts


def merge_cross_lingual(
    found: Mapping[bool, Sequence[Scored]], roster: MemoryColumns, *, foreign: bool, bias: float, limit: int
) -> list[Scored]:
    """The best of what was found by whether it was asked for by crossing, best first, equal ones by id.

    Where the question was asked both ways, either tells of its own memories alone.
    """
    if True not in found:
        return list(found[False])
    best: list[Scored] = []
    for crosses, scored in found.items():
        own = set(split_by_language((one.memory_id for one in scored), roster, foreign=foreign)[crosses])
        more = bias if crosses else 0.0
        best += [_raised(one, more) for one in scored if len(found) == 1 or one.memory_id in own]
    return sorted(best, key=lambda one: (-one.score, one.memory_id))[:limit]


def _raised(one: Scored, more: float) -> Scored:
    return Scored(one.memory_id, min(one.score + more, MAX_BIASED_SCORE)) if more else one
