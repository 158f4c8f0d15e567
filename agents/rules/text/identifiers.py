"""Recognise identifiers in a question: order numbers, hashes, versions, names of files and functions. Pure.

An exact identifier match outranks semantic similarity.
"""

import re

from agents.rules.text.tokenizer import IDENTIFIER_JOINTS

_MEASURE = re.compile(r"\d+[a-z]{1,2}")
"""A number with a unit, which is no identifier: `5pm`, `2nd`, `10km`, `90s`."""

MIN_IDENTIFIER_DIGITS = 5
"""Shorter numbers are years, prices and times, which many turns have."""


def is_identifier(term: str) -> bool:
    """True if a term of `agents.rules.text.tokenizer` is an identifier."""
    if term.isdigit():
        return len(term) >= MIN_IDENTIFIER_DIGITS
    if any(character in IDENTIFIER_JOINTS for character in term):
        return True
    return any(map(str.isdigit, term)) and any(map(str.isalpha, term)) and not _MEASURE.fullmatch(term)
