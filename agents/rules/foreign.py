"""Whether a text is in a language that an English model can't read. Pure.

Enters: a text. Leaves: yes or no. Guaranteed: the same text always gives the same answer, in time linear in it up to
`READ` characters; English, and what can't be told, is not foreign.
"""

import re

from agents.rules.languages import ENGLISH_PLACE, votes_of
from agents.rules.words import fold

READ = 2048
"""Characters that are looked at: as many as are embedded of a turn."""

LEAST_WORDS = 2
"""Stop words and accented ones that must speak for another language: one alone is a name, or chance."""

_WORD = re.compile(r"[^\W\d_]{2,}")
"""Of two letters at least: what stands around apostrophes and in commands is no word of anybody's."""

_ACCENTED = re.compile(r"[\u00c0-\u024f]")
_NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_LATIN = re.compile(r"[^\W\d_\u0250-\u1dff\u1f00-\U0010ffff]")


def is_foreign(text: str) -> bool:
    """Whether the text is mostly in another script, or has more stop words of another language than of English.

    Words with accented letters speak for another language, too, but say nothing against English.
    """
    read = text[:READ]
    if not read.isascii() and len(_NOT_LATIN.findall(read)) > len(_LATIN.findall(read)):
        return True
    votes = votes_of(_WORD.findall(fold(read)))
    english, most = votes[ENGLISH_PLACE], max(votes)
    return (most > english or not most) and most + _accented_words(read) >= LEAST_WORDS


def _accented_words(text: str) -> int:
    return 0 if text.isascii() else sum(1 for word in _WORD.findall(text) if _ACCENTED.search(word))
