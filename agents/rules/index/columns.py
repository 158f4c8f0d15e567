"""Columns of numbers with one row per memory of a boundary. Pure."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

MISSING = -1
"""Stands for no memory, conversation, speaker or vector space."""


@dataclass(frozen=True, slots=True)
class ColumnArrays:
    """One column per attribute, all of shape (rows,); rows without a memory are not `live`.

    `lengths` counts terms, `importance` is in 0..1, `occurred_ms` counts from the epoch. `kinds`, `conversations`,
    `speakers` and `spaces` are indexes that `MemoryColumns` assigns. `languages` are indexes in
    `agents.rules.text.languages.LANGUAGES`; `labels` are flags of `agents.rules.cues.labels.SentenceLabel`, which
    include the role.
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
        """Return columns of `size` rows without a memory."""
        dtypes = {"live": np.bool_, "superseded": np.bool_, "importance": np.float64}
        return cls(**{one.name: np.zeros(size, dtypes.get(one.name, np.int64)) for one in fields(cls)})

    def extended_to(self, size: int) -> Self:
        """Return a copy with rows without a memory at the end."""
        new = self.empty(size)
        for field in fields(self):
            getattr(new, field.name)[: len(self.live)] = getattr(self, field.name)
        return new
