"""Which words of a text carry grammar rather than meaning. Pure.

They are indexed like all others, and left out of a question unless nothing else is left.
"""

from collections.abc import Sequence

from agents.rules.text.languages import ENGLISH_PLACE, LANGUAGES, STOP_WORDS, language_of


def stop_words_of(words: Sequence[str]) -> frozenset[str]:
    """The stop words of the language that most of these folded words point to; English ones when nothing does."""
    return STOP_WORDS[LANGUAGES[language_of(words) or ENGLISH_PLACE]]
