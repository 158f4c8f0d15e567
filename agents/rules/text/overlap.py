"""Overlap of two texts: stems of content words for topics, shingles of words for near-duplicates. Pure.

A text is covered by another one that contains nearly all its runs of three words (Broder, "On the resemblance and
containment of documents", 1997: containment) and all its numbers, negations and names: "at 9:00" and "at 10:00" differ.
Only texts with the deciding words are candidates. Counts are over an inverted index of shingles: time grows with the
texts' overlap. They are exact up to `MAX_COUNTED_SHINGLES`; beyond it fewer texts are covered, never more.
"""

import re
from array import array
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.languages import detect_language, stems, stop_words_of
from agents.rules.text.tokenizer import fold, tokenize

STATUS_WORDS = """
    bug bugs broken complete completed completely crash crashed crashes crashing done error errors fail failed failing
    fails failure finally finish finished fix fixed fixes goal again issue issues longer problem problems resolve
    resolved solved success successfully task try trying want wants now need needs work worked working works
    behoben erledigt fehler fertig funktioniert geht gelost klappt repariert ziel
    arreglado error fallo falla funciona hecho listo objetivo solucionado terminado
    but corrige echec erreur fini marche objectif repare resolu termine
"""
"""Folded words for the status of a thing, not for the thing: reports of different errors share only these."""

_STATUS_WORDS = frozenset(STATUS_WORDS.split())

STEM_CACHE_SIZE = 4096
"""Cached sentences: those of some twenty scopes, a few megabytes."""

MAX_CACHED_CHARS = 1024
"""Longer texts are not cached: one of 32,768 characters has stems of 0.4 MB."""


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a sentence without stop words and status words."""
    return _stems_of(text) if len(text) > MAX_CACHED_CHARS else _cached_stems(text)


def _stems_of(text: str) -> frozenset[str]:
    words = tokenize(text)
    stop_words = stop_words_of(words)
    content = [word for word in words if word not in stop_words and word not in _STATUS_WORDS]
    return frozenset(stems(content, detect_language(words)))


_cached_stems = lru_cache(maxsize=STEM_CACHE_SIZE)(_stems_of)


def stem_coverage(part: frozenset[str], whole: frozenset[str]) -> float:
    """Return the share of `whole` that is in `part`, 0..1; 0 if `whole` is empty."""
    return len(part & whole) / len(whole) if whole else 0.0


SHINGLE_WORDS = 3
"""Words per shingle: with two, common phrases would count as content."""

MIN_SHINGLED_WORDS = 6
"""Shorter texts are never covered: they take little room, and "Yes, do it." refers to the turn before."""

MIN_CONTAINMENT = 0.8
"""Required share of a text's shingles. Among the 3,352 turns of thirteen conversations of ours no pair exceeds 0.6, and
with eight words or more 0.43; a copy of ten words with a word before or after it has 0.88."""

MAX_COUNTED_SHINGLES = 1_000_000
"""Shingles of indexed texts to count for one text, 1 ms: more than the largest context has. The count ends there."""

IntArray = NDArray[np.integer[Any]]

_SHINGLED_WORD = re.compile(r"\w+(?:['\u2019.\-:/]\w+)*")
_NAME = re.compile(r"(?<=[^\s.!?:\u2026\"\u201c(] )[^\W\d_a-z]\w*(?:['\u2019.\-:/]\w+)*")
_DIGIT = re.compile(r"\d")
_NEGATIONS = frozenset(
    (
        *("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without"),
        *("nicht", "kein", "keine", "keinen", "nie", "niemals", "ohne"),
        *("ni", "nunca", "sin", "ne", "pas", "jamais", "sans", "rien", "aucun"),
    )
)


class ShingleIndex:
    """Indexed texts, to test whether one of them covers another text."""

    def __init__(self) -> None:
        self._words: list[set[str]] = []
        self._texts_by_shingle: dict[tuple[str, ...], array[int]] = {}

    def __len__(self) -> int:
        return len(self._words)

    def add(self, text: str) -> None:
        words = _SHINGLED_WORD.findall(fold(text))
        for shingle in _shingles(words):
            self._texts_by_shingle.setdefault(shingle, array("I")).append(len(self._words))
        self._words.append(set(words))

    def covers(self, text: str, since: int = 0) -> bool:
        """True if one of the indexed texts covers this one; only texts from `since` on are compared."""
        if since >= len(self._words):
            return False
        words = _SHINGLED_WORD.findall(fold(text))
        if len(words) < MIN_SHINGLED_WORDS:
            return False
        # Words that decide the meaning: numbers, identifiers, negations, and names within a sentence.
        names = {fold(name) for name in _NAME.findall(text)}
        different = set(words)
        unusual = (word for word in different if not word.isalpha())
        marked = {word for word in unusual if word.endswith("n't") or _DIGIT.search(word)}
        decisive = names | (different & _NEGATIONS) | marked
        candidates = [index for index in range(since, len(self._words)) if decisive <= self._words[index]]
        if not candidates:
            return False
        shingles = _shingles(words)
        # The number of shingles that each indexed text shares.
        sharing = array("I")
        for texts in filter(None, map(self._texts_by_shingle.get, shingles)):
            sharing.extend(texts)
            if len(sharing) > MAX_COUNTED_SHINGLES:
                break
        shared: IntArray = np.bincount(np.frombuffer(sharing, np.uint32), minlength=len(self._words))
        return bool((shared[candidates] >= MIN_CONTAINMENT * len(shingles)).any())


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False))
