"""Which words of a question are identifiers: order numbers, hashes, versions, names of files and functions. Pure.

Who names one wants what has it, however alike everything else may be.
"""

import re

from agents.rules.text.tokenizer import IDENTIFIER_JOINTS

_MEASURE = re.compile(r"\d+[a-z]{1,2}")
"""`5pm`, `2nd`, `10km`, `90s`: a number with its unit, which anybody says."""

MIN_IDENTIFIER_DIGITS = 5
"""Digits of a number that is no year, price or time, which many turns have."""


def is_identifier(term: str) -> bool:
    """Whether a folded term, as `agents.rules.text.tokenizer` cuts texts into, is one."""
    if term.isdigit():
        return len(term) >= MIN_IDENTIFIER_DIGITS
    if any(character in IDENTIFIER_JOINTS for character in term):
        return True
    return any(map(str.isdigit, term)) and any(map(str.isalpha, term)) and not _MEASURE.fullmatch(term)
