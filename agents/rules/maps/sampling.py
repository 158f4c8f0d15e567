"""Choose the memories that a map has room for. Pure.

Enters: rows of memory columns. Leaves: some of them, the same ones every time. Guaranteed: every conversation has one
as long as there is room; a memory that comes later replaces one of its conversation or one other at most.
"""

import numpy as np
from numpy.typing import NDArray

from agents.rules.index.columns import MISSING, ColumnArrays, IntArray

MIX_SHIFTS = (30, 27, 31)
MIX_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)."""


def sample_memories(columns: ColumnArrays, numbers: IntArray, limit: int) -> IntArray:
    """Return at most `limit` of these numbers, ascending."""
    if len(numbers) <= limit:
        return numbers
    ranked = numbers[np.lexsort((numbers, _ranks(columns, numbers)))]
    of_conversation = columns.conversations[ranked]
    is_first = np.zeros(len(ranked), np.bool_)
    is_first[np.unique(of_conversation, return_index=True)[1]] = True
    # Distilled memories belong to no conversation.
    is_first &= of_conversation != MISSING
    chosen = np.concatenate((ranked[is_first], ranked[~is_first]))[:limit]
    return np.sort(chosen)


def _ranks(columns: ColumnArrays, numbers: IntArray) -> NDArray[np.uint64]:
    """Return a pseudorandom rank of each memory by its time and the offset of its turn, which a rebuild keeps."""
    mixed = columns.occurred_ms[numbers].astype(np.uint64) * np.uint64(2**32 + 1) + columns.source[numbers].astype(
        np.uint64
    )
    for shift, factor in zip(MIX_SHIFTS, (*MIX_FACTORS, 1), strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed
