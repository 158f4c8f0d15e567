"""Columns of plain numbers, one place for each memory of a boundary. Pure."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

MISSING = -1
"""In place of a number: there is no such memory, conversation, speaker or vector space."""


@dataclass(frozen=True, slots=True)
class ColumnArrays:
    """`lengths` counts terms, `importance` lies in 0..1, `occurred_ms` counts from the epoch; a hole is not `live`.

    `kinds`, `conversations`, `speakers` and `spaces` are places in lists that somebody else keeps: `conversations` tells conversations
    apart. `languages` are places in `agents.rules.text.languages.LANGUAGES`, `labels` flags of `agents.rules.cues.labels.SentenceLabel`,
    which tell the role, too.
    """

    live: Mask
    superseded: Mask
    kinds: IntArray
    conversations: IntArray
    speakers: IntArray
    spaces: IntArray
    occurred_ms: IntArray
    source: IntArray
    lengths: IntArray
    importance: FloatArray
    languages: IntArray
    labels: IntArray

    @classmethod
    def empty(cls, size: int) -> Self:
        """Columns without any memory."""
        return cls(
            live=np.zeros(size, np.bool_),
            superseded=np.zeros(size, np.bool_),
            kinds=np.zeros(size, np.int64),
            conversations=np.zeros(size, np.int64),
            speakers=np.zeros(size, np.int64),
            spaces=np.zeros(size, np.int64),
            occurred_ms=np.zeros(size, np.int64),
            source=np.zeros(size, np.int64),
            lengths=np.zeros(size, np.int64),
            importance=np.zeros(size, np.float64),
            languages=np.zeros(size, np.int64),
            labels=np.zeros(size, np.int64),
        )

    def extended_to(self, size: int) -> Self:
        """The same memories with holes at the end."""
        new = self.empty(size)
        for field in fields(self):
            getattr(new, field.name)[: len(self.live)] = getattr(self, field.name)
        return new
