"""Deduplicate the items of a scope and mode; of duplicates the oldest is the original. Pure.

Duplicates have the same type, kind and claim, and the same words in the same order, except articles, intensifiers,
"please", and contractions of "not", "am", "are", "have" and "will". Vectors can't decide this: with MiniLM, of 20
duplicate pairs and 20 near misses (`tests/builders/item_pairs.py`), the cosines of duplicates are 0.79 to 0.98, those
of near misses 0.77 to 0.99. Of pairs with the same content stems in the same order, 15 are duplicates, at 0.79 to 0.97,
and 11 are not, at 0.77 to 0.96: they differ by a stop word or an ending. A threshold above these 11 would find 2 of the
20, with a margin of a hundredth. A wrong merge loses a fact; a missed one only repeats it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, detect_language
from agents.rules.text.tokenizer import tokenize
from schemas.state.memories import Memory

FILLER_WORDS: Mapping[str, str] = {
    "english": "a an the really very just so also actually definitely truly quite simply please",
    "german": "der die das den dem des ein eine einen einem einer eines wirklich sehr echt auch bitte",
    "spanish": "el la los las un una unos unas realmente muy tambien",
    "french": "le la les un une vraiment tres aussi",
}
"""Words that don't change the meaning: articles, intensifiers and courtesies, by language."""

CONTRACTION_ENDINGS: Mapping[str, str] = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will"}
"""Unambiguous English contractions: `'s` and `'d` have two readings each."""

IRREGULAR_CONTRACTIONS: Mapping[str, tuple[str, ...]] = {
    "cannot": ("can", "not"),
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
}
"""Contractions without a word before the ending."""

MIN_COMPARED_WORDS = 3
"""Minimum words after normalisation; shorter texts are equal by chance."""


class DedupEntry(NamedTuple):
    """An item's fields for deduplication; items with the same non-empty `dedup_key` are duplicates."""

    memory_id: str
    content_hash: str
    said_first: datetime
    dedup_key: tuple[str, ...]


def dedup_entry_of(item: Memory) -> DedupEntry:
    details = item.item
    first = (details.valid_from if details else None) or item.occurred_at
    written = tokenize(item.text)
    fillers = FILLER_WORDS.get(LANGUAGES[detect_language(written) or ENGLISH_INDEX], "").split()
    words = [word for contracted in written for word in _expand_contraction(contracted) if word not in fillers]
    kind = (item.type, (details.kind if details else None) or "", (details.claim if details else None) or "")
    key = (*kind, *words) if len(words) >= MIN_COMPARED_WORDS else ()
    return DedupEntry(item.memory_id, item.content_hash, first, key)


def find_duplicates(entries: Iterable[DedupEntry], similarity: float = 1.0) -> list[tuple[DedupEntry, DedupEntry]]:
    """Return each duplicate with its oldest original.

    Below a `similarity` of 1 items with that share of words in common are duplicates, too.
    """
    groups: defaultdict[tuple[str, ...], list[DedupEntry]] = defaultdict(list)
    for entry in entries:
        if entry.dedup_key:
            groups[entry.dedup_key].append(entry)
    duplicates = []
    for group in groups.values():
        oldest, *others = sorted(group, key=lambda entry: (entry.said_first, entry.memory_id))
        duplicates += [(other, oldest) for other in others]
    if similarity < 1.0:
        merged = {other.memory_id for other, _ in duplicates}
        left = [entry for group in groups.values() for entry in group if entry.memory_id not in merged]
        duplicates += _find_similar(left, similarity)
    return duplicates


MAX_COMPARED = 2000
"""Items of a kind that are compared with each other, the latest: two seconds of a core."""


def _find_similar(entries: Iterable[DedupEntry], similarity: float) -> list[tuple[DedupEntry, DedupEntry]]:
    """Return the items that share enough words (Jaccard) with an older item of their kind."""
    kinds: defaultdict[tuple[str, ...], list[DedupEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (entry.said_first, entry.memory_id)):
        kinds[entry.dedup_key[:3]].append(entry)
    duplicates = []
    for of_kind in kinds.values():
        originals: list[tuple[DedupEntry, frozenset[str]]] = []
        for entry in of_kind[-MAX_COMPARED:]:
            words = frozenset(entry.dedup_key[3:])
            older = next((old for old, of in originals if len(words & of) >= similarity * len(words | of)), None)
            if older is None:
                originals.append((entry, words))
            else:
                duplicates.append((entry, older))
    return duplicates


def _expand_contraction(word: str) -> tuple[str, ...]:
    ending = next((suffix for suffix in CONTRACTION_ENDINGS if word.endswith(suffix) and word != suffix), None)
    return IRREGULAR_CONTRACTIONS.get(word) or (
        (word,) if ending is None else (word.removesuffix(ending), CONTRACTION_ENDINGS[ending])
    )
