"""The topic of a sentence as the stems of its content words, and the overlap of two topics. Pure."""

from functools import lru_cache

from agents.rules.text.languages import detect_language, stop_words_of
from agents.rules.text.stemming import stems
from agents.rules.text.tokenizer import tokenize

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
