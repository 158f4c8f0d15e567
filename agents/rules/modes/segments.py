"""Conversations cut into stretches of turns that follow each other. Pure.

A register is held for longer than a turn: the mean of a stretch tells it where single turns are too short to. Of more
stretches than are asked for, some are left out evenly, from the first to the last.
"""

import numpy as np

from agents.rules.index.columns import MISSING, IntArray
from agents.rules.index.memory_columns import MemoryColumns

MAX_SEGMENT_TURNS = 8
"""Turns of a stretch. Of eight long conversations mixed into one, stretches of eight fell apart into what they were
about; stretches of four left half of them in one heap."""

MAX_PAUSE_MS = 6 * 3600 * 1000
"""Who talks again after so long begins anew."""


def split_segments(roster: MemoryColumns, most: int) -> list[list[str]]:
    """The ids of the turns of a boundary in stretches, `most` of them or fewer; none that was superseded."""
    columns = roster.columns
    turns = np.flatnonzero(columns.live & ~columns.superseded & (columns.conversations != MISSING))
    order = np.lexsort((columns.source[turns], columns.occurred_ms[turns], columns.conversations[turns]))
    turns = turns[order]
    begins = np.ones(len(turns), np.bool_)
    begins[1:] = np.diff(columns.conversations[turns]) != 0
    begins[1:] |= np.diff(columns.occurred_ms[turns]) > MAX_PAUSE_MS
    cut = [part for talk in np.split(turns, np.flatnonzero(begins)[1:]) for part in _pieces(talk)]
    kept = sorted(set(np.linspace(0, len(cut) - 1, min(most, len(cut))).astype(int).tolist()))
    return [[roster.id_of[number] for number in cut[place].tolist()] for place in kept]


def _pieces(talk: IntArray) -> list[IntArray]:
    return [talk[start : start + MAX_SEGMENT_TURNS] for start in range(0, len(talk), MAX_SEGMENT_TURNS)]
