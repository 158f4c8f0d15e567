"""The signals that are counted over every memory of a boundary, scaled, by name. Pure."""

from collections.abc import Sequence

import numpy as np

from agents.rules.index.bm25 import Postings, bm25
from agents.rules.index.columns import Columns, Floats
from agents.rules.index.turn_order import TurnOrder
from agents.rules.ranking.lexical_features import around, by_conversation
from agents.rules.ranking.query_features import Clues, Fields
from agents.rules.ranking.scaling import PLAIN, SCALES


def fields_by_words(columns: Columns, postings: Sequence[Postings], order: TurnOrder, documents: int) -> Fields:
    """`words`, `around` and `conversation`."""
    found = {
        "words": bm25(postings, columns.lengths, documents),
        "around": around(postings, columns.lengths, order, documents),
        "conversation": by_conversation(postings, columns),
    }
    return {name: SCALES[name].of(values) for name, values in found.items()}


def fields_of(clues: Clues) -> Fields:
    """The fields by words, and as far as they are known `late` and `dense`."""
    seen = {"late": clues.late, "dense": clues.dense}
    return {**clues.by_words, **{name: SCALES[name].of(one) for name, one in seen.items() if one is not None}}


def plain(fields: Fields) -> Floats:
    """A plain sum of the fields that tell most, by number."""
    total = np.zeros(len(fields["words"]))
    for name, weight in PLAIN.items():
        if name in fields:
            total += weight * fields[name]
    return total
