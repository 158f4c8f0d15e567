"""The signals that are counted over every memory of a boundary, scaled, by name. Pure."""

from collections.abc import Mapping

import numpy as np

from agents.rules.bm25 import bm25
from agents.rules.clues import Clues
from agents.rules.columns import Floats
from agents.rules.scaling import PLAIN, SCALES
from agents.rules.word_signals import around, by_conversation

Fields = Mapping[str, Floats]
"""Arrays of shape (memories,), by number."""


def fields_of(clues: Clues) -> Fields:
    """`words`, `around` and `conversation`, and as far as they are known `late` and `dense`."""
    columns, postings, documents = clues.columns, clues.postings, clues.documents
    found = {
        "words": bm25(postings, columns.lengths, documents),
        "around": around(postings, columns.lengths, clues.order, documents),
        "conversation": by_conversation(postings, columns),
        **({} if clues.late is None else {"late": clues.late}),
        **({} if clues.dense is None else {"dense": clues.dense}),
    }
    return {name: SCALES[name].of(values) for name, values in found.items()}


def plain(fields: Fields) -> Floats:
    """A plain sum of the fields that tell most, by number."""
    total = np.zeros(len(fields["words"]))
    for name, weight in PLAIN.items():
        if name in fields:
            total += weight * fields[name]
    return total
