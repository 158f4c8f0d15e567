"""Texts into the words that the word index keeps: pure, and the same for memories and questions.

A word is folded (case, accents, width) and keeps its ending: `agents.rules.index.vocabulary` tells which words count as one,
so that a text of which the language can't be told is found all the same. An identifier such as `ZX-81-K17`,
`snake_case` or `fly.io` is kept whole and in parts; scripts without spaces give characters and pairs of characters;
an emoji is a word. Stop words are terms of a text, but of a question only when it has no others.
"""

import re
import unicodedata
from itertools import pairwise

from agents.rules.text.languages import detect_language
from agents.rules.text.stemming import stems
from agents.rules.text.stop_words import stop_words_of

MAX_TERM_CHARS = 64
"""Characters of a term. Longer runs are encoded data, found by how they begin."""

MAX_FOLD_EXPANSION = 4
"""Characters that one becomes at most on average: a word in Greek needs four, a ligature may be a whole sentence."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Kana, Han and Hangul: scripts where a word does not end at a space, or rarely does."""

_EMOJI = "\u203c\u2049\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001f3fa"
_EMOJI += "\U0001f400-\U0001faff"
"""Pictures and symbols, without the skin tones that only modify one."""

_WORDS = re.compile(rf"[{_UNSPACED}]+|[{_EMOJI}]|(?:(?![{_UNSPACED}])\w)+(?:['\-./:@+](?:(?![{_UNSPACED}])\w)+)*")
_ASCII_WORDS = re.compile(r"\w+(?:['\-./:@+]\w+)*", re.ASCII)
_SHORT_I, _SPREAD_SHORT_I = "\u0439", "\u0438\u0306"
"""A Cyrillic letter of its own, no accented one: Russian endings are known by it."""

_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_PLAIN = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u00a0", "''      ")
_JOINTS = re.compile(r"[_'\-./:@+]+")
IDENTIFIER_JOINTS = "_./:@+"
"""What no word of prose is joined by, as `fly.io` and `a_b` are."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CONTRACTION = re.compile(r"[^\W_]+'(?:s|t|d|m|re|ve|ll)")


def tokenize(text: str) -> list[str]:
    """The words of a text that is kept, in order, with repetitions."""
    folded = fold(_CAMEL.sub("_", text))
    found = (_ASCII_WORDS if folded.isascii() else _WORDS).findall(folded)
    words: list[str] = []
    for word in found:
        if word.isalnum() and (word.isascii() or not _UNSPACED_RUN.match(word)):
            words.append(word[:MAX_TERM_CHARS])
        else:
            words.extend(_pieces(word))
    return words


def content_terms(text: str) -> list[str]:
    """The different words of a question, in order, without the stop words of its language; may be none.

    Of several with the same stem, only the first.
    """
    words = tokenize(text)
    stops = stop_words_of(words)
    return _once([word for word in words if word not in stops], detect_language(words))


def question_terms(text: str) -> list[str]:
    """The telling terms of a question, or all of its different terms where none is telling."""
    words = tokenize(text)
    return content_terms(text) or _once(words, detect_language(words))


def _once(words: list[str], language: int) -> list[str]:
    firsts: dict[str, str] = {}
    for word, stem in zip(words, stems(words, language), strict=True):
        firsts.setdefault(stem, word)
    return list(firsts.values())


def is_stop_word(word: str) -> bool:
    """Whether an English sentence needs this word for its grammar only."""
    return fold(word) in stop_words_of(())


def fold(text: str) -> str:
    """A text without case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    text = text.translate(_PLAIN)
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", text)[: MAX_FOLD_EXPANSION * len(text) + MAX_TERM_CHARS].casefold()
    spread = spread.replace(_SPREAD_SHORT_I, _SHORT_I)
    plain = "".join(character for character in spread if not unicodedata.combining(character))
    return unicodedata.normalize("NFC", plain)


def _pieces(word: str) -> list[str]:
    """What a compound, an identifier, a run without spaces or an emoji is found by."""
    if _UNSPACED_RUN.match(word):
        return [*word, *map("".join, pairwise(word))]
    if _CONTRACTION.fullmatch(word):
        return [word[:MAX_TERM_CHARS]]
    parts = [part[:MAX_TERM_CHARS] for part in _JOINTS.split(word) if part]
    if len(parts) > 1 and _is_identifier(word):
        parts.append(word[:MAX_TERM_CHARS])
    return parts


def _is_identifier(word: str) -> bool:
    """Whether the whole means more than its parts: `zx-81`, `fly.io`, `a_b`, but not `well-known` or `l'eau`."""
    return any(character.isdigit() or character in IDENTIFIER_JOINTS for character in word)
