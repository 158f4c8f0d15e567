"""Analyse a turn before it is stored: everything that is extracted from its text. Pure."""

from typing import NamedTuple

from agents.rules.cues.has_signals import has_text_signals
from agents.rules.items.extracted_item import ExtractedItem
from agents.rules.items.extracting import extract_items
from schemas.memories import Memory
from schemas.understanding import Understanding


class Analysis(NamedTuple):
    """What rules, and a language model where it has answered, find in a turn."""

    items: list[ExtractedItem]
    has_signals: bool
    """True if the text concerns an intention, even without an item."""


def analyse(turn: Memory, understanding: Understanding | None = None) -> Analysis:
    """Return the items and signals of a turn; `understanding` is a model's answer about its current text."""
    return Analysis(extract_items(turn, understanding), has_text_signals(turn))
