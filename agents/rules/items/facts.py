"""Detect sentences that state a fact. Pure.

Enters: a sentence, folded and as written. Guaranteed: guesses, wishes and suppositions are no facts; a pattern that
needs a specific value matches only before a name, a number or a date: `The deploy target is fly.io` is a fact, `The
weather is nice` is none.
"""

import re

from agents.rules.items.fact_forms import FACT_PATTERNS
from agents.rules.text.date_words import MONTHS, NUMBER_WORDS, WEEKDAYS

LOOKAHEAD_WORDS = 2
"""Words after a pattern to search for a specific value."""

_TRIGGERS = frozenset().union(*(pattern.triggers for pattern in FACT_PATTERNS))

_FIRST_PERSON = re.compile(
    r" (?:i|i'm|i've|my|mine|me|we|our|us|ich|mein|meine|mi|vivo|trabajo|je|j'habite|mon|ma|wir|unser) "
)
_UNCERTAIN = re.compile(
    r" (?:if|unless|would|could|might|may (?:be|have|not|need|want|take|get|go|come|also|well|cost)|maybe|"
    r"perhaps|probably|possibly|apparently|supposedly|suppose|guess|wish|"
    r"hope|hopefully|imagine|pretend|joke|joking|think|thought|believe|seems?|looks? like|used to|should|wenn|falls|"
    r"wahrscheinlich|vielleicht|glaube|denke|hoffe|sollte|ware|wurde|konnte|si|quizas|tal vez|creo|ojala|seria|podria|"
    r"peut-etre|je crois|je pense|serait|pourrait|devrait|either|or|nothing|nobody|whatever|whether) "
)
"""Words of a guess, a wish or a supposition."""

_DATES = frozenset({*MONTHS, *WEEKDAYS, *(word for word, number in NUMBER_WORDS.items() if number > 1)}) - {
    "may",
    "mar",
}
_NUMBER_OR_IDENTIFIER = re.compile(r"[\d._/@]")
_CAPITALISED_PRONOUNS = frozenset({"I", "I'm", "I've", "I'd", "I'll"})
_CLAUSE_STARTS = frozenset(
    {",", ":", "?", "!", "and", "but", "because", "so", "since", "when", "while", "than"}
) | frozenset({"und", "aber", "weil", "y", "pero", "porque", "et", "mais", "car"})


def states_fact(words: list[str], written: list[str], spaced: str, *, has_first_person: bool) -> bool:
    """True if a sentence states a fact.

    `words` are folded, `written` are as written. Without `has_first_person`, sentences in the first person are none.
    """
    if _TRIGGERS.isdisjoint(words) or _UNCERTAIN.search(spaced):
        return False
    if not has_first_person and _FIRST_PERSON.search(spaced):
        return False
    for fact in FACT_PATTERNS:
        match = None if fact.triggers.isdisjoint(words) else fact.pattern.match(spaced)
        if match and (
            not fact.needs_specific_value or has_specific_value(written, spaced.count(" ", 0, match.end()) - 1)
        ):
            return True
    return False


def has_specific_value(written: list[str], start: int) -> bool:
    """True if a name, a number or a date is among the `LOOKAHEAD_WORDS` from `start`, within the clause."""
    for word in written[start : start + LOOKAHEAD_WORDS]:
        if word in _CLAUSE_STARTS:
            return False
        is_name = word[0].isupper() and word not in _CAPITALISED_PRONOUNS
        if is_name or _NUMBER_OR_IDENTIFIER.search(word) or word in _DATES:
            return True
    return False
