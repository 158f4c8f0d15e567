"""Whether a sentence states a fact, and whether what stands in it tells anything. Pure.

Enters: a sentence, folded and as it was written. Leaves: yes or no. Guaranteed: what is guessed, wished or supposed is
no fact; a form that needs a telling value counts only with a name, a number or a date right behind it: `The deploy
target is fly.io` states something, `The weather is nice` passes.
"""

import re

from agents.rules.items.fact_forms import FACT_PATTERNS
from agents.rules.text.date_words import MONTHS, NUMBER_WORDS, WEEKDAYS

LOOKAHEAD_WORDS = 2
"""Words behind a form among which the telling one is."""

_VERBS = frozenset().union(*(form.triggers for form in FACT_PATTERNS))
"""Of these one is in every form."""

_OWN = re.compile(r" (?:i|i'm|i've|my|mine|me|we|our|us|ich|mein|meine|mi|vivo|trabajo|je|j'habite|mon|ma|wir|unser) ")
_UNSURE = re.compile(
    r" (?:if|unless|would|could|might|may (?:be|have|not|need|want|take|get|go|come|also|well|cost)|maybe|"
    r"perhaps|probably|possibly|apparently|supposedly|suppose|guess|wish|"
    r"hope|hopefully|imagine|pretend|joke|joking|think|thought|believe|seems?|looks? like|used to|should|wenn|falls|"
    r"wahrscheinlich|vielleicht|glaube|denke|hoffe|sollte|ware|wurde|konnte|si|quizas|tal vez|creo|ojala|seria|podria|"
    r"peut-etre|je crois|je pense|serait|pourrait|devrait|either|or|nothing|nobody|whatever|whether) "
)
"""What makes a statement a guess, a wish or a supposition."""

_DATES = frozenset({*MONTHS, *WEEKDAYS, *(word for word, number in NUMBER_WORDS.items() if number > 1)}) - {
    "may",
    "mar",
}
_MARKED = re.compile(r"[\d._/@]")
_OPENERS = frozenset({"I", "I'm", "I've", "I'd", "I'll"})
_STOPS = frozenset({",", ":", "?", "!", "and", "but", "because", "so", "since", "when", "while", "than"}) | frozenset(
    {"und", "aber", "weil", "y", "pero", "porque", "et", "mais", "car"}
)
"""Where another clause begins."""


def states_fact(words: list[str], written: list[str], spaced: str, *, has_first_person: bool) -> bool:
    """Whether a sentence states a fact. `written` are its words as they were written; `has_first_person` may say `I`."""
    if _VERBS.isdisjoint(words) or _UNSURE.search(spaced) or (not has_first_person and _OWN.search(spaced)):
        return False
    for form in FACT_PATTERNS:
        match = None if form.triggers.isdisjoint(words) else form.pattern.match(spaced)
        if match and (
            not form.needs_specific_value or has_specific_value(written, spaced.count(" ", 0, match.end()) - 1)
        ):
            return True
    return False


def has_specific_value(written: list[str], place: int) -> bool:
    """Whether a name, a number or a date stands among the next words, before any comma."""
    for word in written[place : place + LOOKAHEAD_WORDS]:
        if word in _STOPS:
            return False
        if (word[0].isupper() and word not in _OPENERS) or _MARKED.search(word) or word in _DATES:
            return True
    return False
