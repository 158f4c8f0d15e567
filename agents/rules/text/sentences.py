"""Split a text into sentences and normalise them for cue matching. Pure.

Enters: a text as written. Leaves: its sentences, folded (no case, no accents), with their words. Guaranteed: time
linear in the text; only the first `MAX_PARSED_CHARS` characters are parsed.
"""

import re
from typing import NamedTuple

from agents.rules.text.tokenizer import fold

MAX_PARSED_CHARS = 8192
"""Characters to parse: what a person says is shorter, and a page of a log is not a statement."""

_END = re.compile(r"(?<=[.!?\u2026])[\"')\u201d\u2019]{0,2}\s+|\n\s*|;\s+|(?<=\s)[\u2013\u2014-]\s+|\u2014")
"""Separator of sentences: after a full stop, at a line end, at a semicolon or a dash.

White space before a line end or a dash stays with the sentence: to match it would take quadratic time in spaces.
"""

_WORD = re.compile(r"[^\W_]+(?:['\u2019.\-][^\W_]+)*|[,:?!]")
"""A word with its apostrophes and hyphens, or punctuation that cues contain."""


class Sentence(NamedTuple):
    """A folded sentence. `spaced` is `words` with a space before, between and after, so that cues match whole words."""

    words: list[str]
    spaced: str

    @property
    def is_question(self) -> bool:
        """True if it ends with a question mark."""
        return self.words[-1] == "?"


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text as written, in order."""
    return [part for part in _END.split(text[:MAX_PARSED_CHARS]) if part]


def parse_sentence(text: str) -> Sentence:
    """Normalise one sentence for cue matching."""
    words = _WORD.findall(fold(text))
    return Sentence(words, f" {' '.join(words)} ")


def written_words(text: str) -> list[str]:
    """Return the words with case and accents: mostly, but not always, one for each of `Sentence.words`."""
    return _WORD.findall(text)


def parse_sentences(text: str) -> list[Sentence]:
    """Return the normalised sentences of a text in order, without those that have no words."""
    return [sentence for sentence in map(parse_sentence, split_sentences(text)) if sentence.words]
