"""Which words of a text carry grammar rather than meaning. Pure.

They are indexed like all others, and left out of a question unless nothing else is left.
"""

from collections.abc import Sequence

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, STOP_WORDS, detect_language


def stop_words_of(words: Sequence[str]) -> frozenset[str]:
    """The stop words of the language that most of these folded words point to; English ones when nothing does."""
    return STOP_WORDS[LANGUAGES[detect_language(words) or ENGLISH_INDEX]]
