"""BM25 of a turn with its neighbours and of a whole conversation, over the postings of single turns. Pure."""

from collections.abc import Sequence

import numpy as np

from agents.rules.index.bm25 import Postings, bm25
from agents.rules.index.columns import MISSING, ColumnArrays, FloatArray, IntArray
from agents.rules.index.turn_order import TurnOrder


def neighbourhood_bm25(postings: Sequence[Postings], lengths: IntArray, order: TurnOrder, documents: int) -> FloatArray:
    """Return BM25 of each turn concatenated with the turns before and after it, in 0..1."""
    spread = [_with_neighbours(term, order, len(lengths)) for term in postings]
    padded = np.append(lengths, 0)
    longer = lengths + padded[order.before] + padded[order.after]
    return bm25(spread, longer, documents)


def _with_neighbours(term: Postings, order: TurnOrder, size: int) -> Postings:
    turns = np.concatenate([term.numbers, order.before[term.numbers], order.after[term.numbers]])
    counts = np.bincount(np.where(turns == MISSING, size, turns), np.tile(term.counts, 3), size)
    numbers = np.flatnonzero(counts[:size])
    return Postings(numbers, counts[numbers].astype(np.int64))


def conversation_bm25(postings: Sequence[Postings], columns: ColumnArrays) -> FloatArray:
    """Return BM25 of each memory's conversation as one text, in 0..1; 0 for memories outside of conversations."""
    conversations = columns.conversations
    has_one = columns.live & (conversations != MISSING)
    size = int(conversations.max(initial=MISSING)) + 1
    lengths = np.bincount(conversations[has_one], columns.lengths[has_one], size).astype(np.int64)
    counted = [_in_conversations(term, conversations, size) for term in postings]
    scores = np.append(bm25(counted, lengths, int((lengths > 0).sum())), 0.0)
    return scores[np.where(has_one, conversations, size)]


def _in_conversations(term: Postings, conversations: IntArray, size: int) -> Postings:
    places = np.where(conversations[term.numbers] == MISSING, size, conversations[term.numbers])
    counts = np.bincount(places, term.counts, size + 1)[:size]
    numbers = np.flatnonzero(counts)
    return Postings(numbers, counts[numbers].astype(np.int64))


def matched_term_share(postings: Sequence[Postings], memories: int) -> FloatArray:
    """Return for each memory the share of these terms that it has; 0 without terms."""
    found = np.zeros(memories)
    for term in postings:
        found[term.numbers] += 1.0
    return found / max(len(postings), 1)
