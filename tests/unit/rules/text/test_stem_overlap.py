"""Stems of sentences, and what is cached of them."""

from agents.rules.text import stem_overlap
from agents.rules.text.stem_overlap import MAX_CACHED_CHARS, content_stems


def test_stems_of_long_sentences_are_not_cached() -> None:
    long = "harbour " * (MAX_CACHED_CHARS // 8 + 1)
    cached = stem_overlap._cached_stems.cache_info().currsize
    assert content_stems(long) == content_stems("the harbours") == {"harbour"}
    assert content_stems(long) is not content_stems(long)
    assert stem_overlap._cached_stems.cache_info().currsize <= cached + 1
