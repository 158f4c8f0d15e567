"""Spans of a text as pieces to show: marked or not, long unmarked ones cut. Pure; offsets are Unicode code points."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

AROUND_CHARS = 280
"""Characters shown before and after a marked piece: about two sentences."""


class Piece(NamedTuple):
    """A part of a text. `is_marked`: it lies in a span."""

    text: str
    is_marked: bool = False


def pieces_of(text: str, spans: Iterable[tuple[int, int]]) -> list[Piece]:
    """Cut a text at its spans, which may overlap, and may lie outside where the text has changed since.

    >>> pieces_of("we moved to Kent", [(9, 16)])
    [Piece(text='we moved ', is_marked=False), Piece(text='to Kent', is_marked=True)]
    """
    pieces, position = [], 0
    for start, end in _merged(spans, len(text)):
        pieces += [Piece(text[position:start]), Piece(text[start:end], is_marked=True)]
        position = end
    pieces.append(Piece(text[position:]))
    return [piece for piece in pieces if piece.text]


def excerpt(pieces: Sequence[Piece], around: int = AROUND_CHARS) -> list[Piece]:
    """Cut unmarked pieces to the characters next to marked ones; cut a text without marks at its end."""
    last = len(pieces) - 1
    return [
        piece if piece.is_marked else Piece(_cut(piece.text, around, at_start=number > 0, at_end=number < last))
        for number, piece in enumerate(pieces)
    ]


def _cut(text: str, around: int, *, at_start: bool, at_end: bool) -> str:
    """Keep the characters next to marked pieces."""
    if len(text) <= around * (2 if at_start and at_end else 1):
        return text
    if at_start and at_end:
        return f"{text[:around]} … {text[-around:]}"
    return f"… {text[-around:]}" if at_end else f"{text[:around]} …"


def _merged(spans: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start), min(end, length)) for start, end in spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
