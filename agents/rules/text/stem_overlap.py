"""What a sentence is about, as the stems of its telling words, and how much of it another speaks of. Pure."""

from functools import lru_cache

from agents.rules.text.languages import detect_language
from agents.rules.text.stemming import stems
from agents.rules.text.stop_words import stop_words_of
from agents.rules.text.tokenizer import tokenize

STATUS_WORDS = """
    bug bugs broken complete completed completely crash crashed crashes crashing done error errors fail failed failing
    fails failure finally finish finished fix fixed fixes goal again issue issues longer problem problems resolve
    resolved solved success successfully task try trying want wants now need needs work worked working works
    behoben erledigt fehler fertig funktioniert geht gelost klappt repariert ziel
    arreglado error fallo falla funciona hecho listo objetivo solucionado terminado
    but corrige echec erreur fini marche objectif repare resolu termine
"""
"""Folded words that say how a thing stands, not which thing it is: two reports of an error share no more than these."""

_COURSE = frozenset(STATUS_WORDS.split())

STEM_CACHE_SIZE = 4096
"""Sentences whose stems are kept: those of some twenty scopes, a few megabytes."""


@lru_cache(maxsize=STEM_CACHE_SIZE)
def content_stems(text: str) -> frozenset[str]:
    """The stems of what a sentence is about, without stop words and without words of how it stands."""
    words = tokenize(text)
    stops = stop_words_of(words)
    left = [word for word in words if word not in stops and word not in _COURSE]
    return frozenset(stems(left, detect_language(words)))


def stem_coverage(part: frozenset[str], whole: frozenset[str]) -> float:
    """How much of `whole` is in `part`, 0..1; nothing where `whole` is empty."""
    return len(part & whole) / len(whole) if whole else 0.0
