"""How well the words of each memory, of those around it and of its conversation match a question's. Pure.

All of it is BM25 (`agents.rules.index.bm25`) over one set of postings, counted by turn, over a turn with its neighbours, and
by conversation.
"""

from collections.abc import Sequence

import numpy as np

from agents.rules.index.bm25 import Postings, bm25
from agents.rules.index.columns import MISSING, ColumnArrays, FloatArray, IntArray
from agents.rules.index.turn_order import TurnOrder


def neighbourhood_bm25(postings: Sequence[Postings], lengths: IntArray, order: TurnOrder, documents: int) -> FloatArray:
    """BM25 of each turn read together with the turn before and the turn after it, in 0..1."""
    spread = [_with_neighbours(term, order, len(lengths)) for term in postings]
    padded = np.append(lengths, 0)
    longer = lengths + padded[order.before] + padded[order.after]
    return bm25(spread, longer, documents)


def _with_neighbours(term: Postings, order: TurnOrder, size: int) -> Postings:
    places = [term.numbers, order.before[term.numbers], order.after[term.numbers]]
    counts = np.bincount(
        np.where((all_ := np.concatenate(places)) == MISSING, size, all_), np.tile(term.counts, 3), size
    )
    numbers = np.flatnonzero(counts[:size])
    return Postings(numbers, counts[numbers].astype(np.int64))


def conversation_bm25(postings: Sequence[Postings], columns: ColumnArrays) -> FloatArray:
    """BM25 of the conversation that each memory belongs to, read as one text, in 0..1; 0 for what is in none."""
    talks = columns.conversations
    talking = columns.live & (talks != MISSING)
    size = int(talks.max(initial=MISSING)) + 1
    lengths = np.bincount(talks[talking], columns.lengths[talking], size).astype(np.int64)
    counted = [_in_conversations(term, talks, size) for term in postings]
    return np.append(bm25(counted, lengths, int((lengths > 0).sum())), 0.0)[np.where(talking, talks, size)]


def _in_conversations(term: Postings, talks: IntArray, size: int) -> Postings:
    places = np.where(talks[term.numbers] == MISSING, size, talks[term.numbers])
    counts = np.bincount(places, term.counts, size + 1)[:size]
    numbers = np.flatnonzero(counts)
    return Postings(numbers, counts[numbers].astype(np.int64))


def matched_term_share(postings: Sequence[Postings], memories: int) -> FloatArray:
    """For each memory the share of these terms that it has; 0 where there are no terms."""
    found = np.zeros(memories)
    for term in postings:
        found[term.numbers] += 1.0
    return found / max(len(postings), 1)
