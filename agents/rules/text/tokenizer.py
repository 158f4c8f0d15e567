"""Split a text into terms, and extract its entities, the same for memories and questions. Pure.

Terms are folded (case, accents, width) and not stemmed: `agents.rules.index.vocabulary` groups inflections, so that a
text of unknown language is found, too. An identifier such as `ZX-81-K17`, `snake_case` or `fly.io` gives itself and its
parts; scripts without spaces give characters and pairs of characters; an emoji is a term. Stop words are terms of a
text, but of a question only if it has no others. Entities are names, identifiers, mentions and addresses.
"""

import re
import unicodedata
from itertools import pairwise

from agents.rules.text.languages import detect_language, stems, stop_words_of

MAX_TERM_CHARS = 64
"""Maximum characters of a term. Longer runs are encoded data, found by their beginning."""

MAX_FOLD_EXPANSION = 4
"""Average folded characters per character: a word in Greek needs four, a ligature may be a whole sentence."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Kana, Han and Hangul: scripts in which words rarely or never end at a space."""

_EMOJI = "\u203c\u2049\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001f3fa"
_EMOJI += "\U0001f400-\U0001faff"
"""Emoji and symbols, without the skin tone modifiers."""

_WORDS = re.compile(rf"[{_UNSPACED}]+|[{_EMOJI}]|(?:(?![{_UNSPACED}])\w)+(?:['\-./:@+](?:(?![{_UNSPACED}])\w)+)*")
_ASCII_WORDS = re.compile(r"\w+(?:['\-./:@+]\w+)*", re.ASCII)
_SHORT_I, _DECOMPOSED_SHORT_I = "\u0439", "\u0438\u0306"
"""A Cyrillic letter in its own right, not an accented one: Russian endings contain it."""

_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_ASCII_PUNCTUATION = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u00a0", "''      ")
_JOINTS = re.compile(r"[_'\-./:@+]+")
IDENTIFIER_JOINTS = "_./:@+"
"""Joints of identifiers that never join words of prose: `fly.io`, `a_b`."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CONTRACTION = re.compile(r"[^\W_]+'(?:s|t|d|m|re|ve|ll)")


def tokenize(text: str) -> list[str]:
    """Return the terms of a text to index, in order, with repetitions."""
    folded = fold(_CAMEL.sub("_", text))
    words: list[str] = []
    for word in (_ASCII_WORDS if folded.isascii() else _WORDS).findall(folded):
        if word.isalnum() and (word.isascii() or not _UNSPACED_RUN.match(word)):
            words.append(word[:MAX_TERM_CHARS])
        else:
            words.extend(_parts_of(word))
    return words


def content_terms(text: str) -> list[str]:
    """Return the terms of a question without stop words, in order, one per stem; possibly none."""
    words = tokenize(text)
    stop_words = stop_words_of(words)
    return _dedup_by_stem([word for word in words if word not in stop_words], detect_language(words))


def question_terms(text: str) -> list[str]:
    """Return the content terms of a question, or all its terms if it has none; one per stem."""
    words = tokenize(text)
    return content_terms(text) or _dedup_by_stem(words, detect_language(words))


def _dedup_by_stem(words: list[str], language: int) -> list[str]:
    firsts: dict[str, str] = {}
    for word, stem in zip(words, stems(words, language), strict=True):
        firsts.setdefault(stem, word)
    return list(firsts.values())


_FRAGMENT = re.compile(r"[a-z0-9]{2,}")

MAX_FRAGMENTS = 3
"""Maximum fragments of one string, its longest: a further one rarely excludes a text."""


def fragments(text: str) -> list[str]:
    """Return runs of letters and digits, of which every text with this string has a term that contains them.

    Empty for a string without such a run of ASCII: in other scripts a term may end anywhere.

    >>> fragments("in Kent, 'well-known'")
    ['known', 'well', 'kent']
    """
    runs = sorted(_FRAGMENT.findall(fold(text)), key=len, reverse=True)
    return [run[:MAX_TERM_CHARS] for run in runs[:MAX_FRAGMENTS]]


def is_stop_word(word: str) -> bool:
    return fold(word) in stop_words_of(())


def fold(text: str) -> str:
    """Remove case, accents and compatibility forms; make apostrophes `'`."""
    if text.isascii():
        return text.lower()
    text = text.translate(_ASCII_PUNCTUATION)
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)[: MAX_FOLD_EXPANSION * len(text) + MAX_TERM_CHARS].casefold()
    decomposed = decomposed.replace(_DECOMPOSED_SHORT_I, _SHORT_I)
    base = "".join(character for character in decomposed if not unicodedata.combining(character))
    return unicodedata.normalize("NFC", base)


def _parts_of(word: str) -> list[str]:
    if _UNSPACED_RUN.match(word):
        return [*word, *map("".join, pairwise(word))]
    if _CONTRACTION.fullmatch(word):
        return [word[:MAX_TERM_CHARS]]
    parts = [part[:MAX_TERM_CHARS] for part in _JOINTS.split(word) if part]
    # The whole means more than its parts: `zx-81`, `fly.io`, `a_b`, but not `well-known` or `l'eau`.
    if len(parts) > 1 and any(character.isdigit() or character in IDENTIFIER_JOINTS for character in word):
        parts.append(word[:MAX_TERM_CHARS])
    return parts


MAX_ENTITIES_PER_TEXT = 32
"""Maximum entities per text: a page of code would be nothing but identifiers."""

MAX_ENTITY_CHARS = 128
"""Longer entities are dropped: they are data, not names."""

_URL = re.compile(r"\b(?:https?://|www\.)[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]")
_MENTION = re.compile(r"(?<![\w@])@\w[\w.-]*\w")
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z]\w*+(?:\.\w++){0,6}\.(?:py|js|ts|go|rs|io|com|org|net|md|json|ya?ml|sql|sh|txt)"
    r"|\w+(?:_\w+)+|[a-z]+[A-Z]\w*|(?=[\w-]{0,20}\d)(?=[\w-]{0,20}[A-Za-z])\w+(?:-\w+)*)\b"
)
"""Parts and look-aheads are bounded: they restart at every word, and `a-a-a-` would take half a minute."""

_NAME = re.compile(
    r"(?<!\w)[^\W\d_a-z]\w*(?:['\u2019-]\w+)*(?:[ ](?:(?:of|the|de|van|von|da|di|la)[ ])?[^\W\d_a-z]\w*)*"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\u2026\"\u201c(\[])\s*$")
_POSSESSIVE = re.compile(r"['\u2019]s$")


def extract_entities(text: str) -> tuple[str, ...]:
    """Return the entities as written, each once, ordered by kind: addresses, mentions, identifiers, names."""
    entities: dict[str, str] = {}
    for pattern in (_URL, _MENTION, _IDENTIFIER):
        for match in pattern.findall(text):
            entities.setdefault(fold(match), match)
    # Runs of capitalised words, without the word that merely opens a sentence.
    names = []
    for run in _NAME.finditer(text):
        words = run.group().split(" ")
        is_opening = _SENTENCE_START.search(text, max(0, run.start() - 3), run.start()) or run.start() == 0
        if is_opening and (len(words) == 1 or is_stop_word(words[0])):
            words = words[1:]
        candidate = _POSSESSIVE.sub("", " ".join(words))
        if len(candidate) > 1 and candidate[:1].isupper() and not is_stop_word(candidate):
            names.append(candidate)
    for name in names:
        entities.setdefault(fold(name), name)
    return tuple(entity for entity in entities.values() if len(entity) <= MAX_ENTITY_CHARS)[:MAX_ENTITIES_PER_TEXT]
