"""Analyse a turn's text: the one call by which the rules see a turn before it is stored. Pure."""

from typing import NamedTuple

from agents.rules.cues.has_signals import has_signals
from agents.rules.items.extracting import extract_items
from agents.rules.items.found import ExtractedItem
from schemas.memories import Memory
from schemas.understanding import Understanding


class Analysis(NamedTuple):
    """What rules, and a language model where it has answered, find in a turn."""

    items: list[ExtractedItem]
    has_signals: bool
    """True if the turn concerns intentions or categories even without new items."""


def analyse(turn: Memory, understanding: Understanding | None = None) -> Analysis:
    """Return the items and signals of a turn; `understanding` is a model's answer about its current text."""
    return Analysis(extract_items(turn, understanding), has_signals(turn))
