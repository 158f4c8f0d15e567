"""A text as sentences, and a sentence in a form that cues are looked for in. Pure.

Enters: a text as it was written. Leaves: its sentences, folded (no case, no accents), each with its words. Guaranteed:
time linear in the text, and no more than `MAX_PARSED_CHARS` characters are read.
"""

import re
from typing import NamedTuple

from agents.rules.text.tokenizer import fold

MAX_PARSED_CHARS = 8192
"""Characters that are read: what a person says is shorter, and a page of a log is no longer a statement."""

_END = re.compile(r"(?<=[.!?\u2026])[\"')\u201d\u2019]{0,2}\s+|\n\s*|;\s+|(?<=\s)[\u2013\u2014-]\s+|\u2014")
"""Between two sentences: after a full stop, at the end of a line, at a semicolon or a dash.

White space before a line's end or a dash stays with the sentence: to look for it would take quadratic time in spaces.
"""

_WORD = re.compile(r"[^\W_]+(?:['\u2019.\-][^\W_]+)*|[,:?!]")
"""A word with its apostrophes and hyphens, or a mark of punctuation that cues ask for."""


class Sentence(NamedTuple):
    """One sentence. `spaced` is `words` with a space before, between and after, so that a cue is found as a whole."""

    words: list[str]
    spaced: str

    @property
    def asks(self) -> bool:
        """Whether it ends as a question."""
        return self.words[-1] == "?"


def split_sentences(text: str) -> list[str]:
    """The sentences of a text as they were written, in order."""
    return [part for part in _END.split(text[:MAX_PARSED_CHARS]) if part]


def parse_sentence(part: str) -> Sentence:
    """One part of a text in the form that cues are looked for in."""
    words = _WORD.findall(fold(part))
    return Sentence(words, f" {' '.join(words)} ")


def written_words(part: str) -> list[str]:
    """The words of a part with their case and accents: mostly one for each of `Sentence.words`, if not always."""
    return _WORD.findall(part)


def parse_sentences(text: str) -> list[Sentence]:
    """The sentences of a text in order, without those that have no word."""
    return [found for found in map(parse_sentence, split_sentences(text)) if found.words]
