"""Which items of a scope and mode say the same in other words. Pure.

Enters: items. Leaves: for each that says nothing of its own the older one that says it. Two items are the same when
they are of one type and kind, make the same claim, and have the same words in the same order, but for articles and
intensifiers. Vectors are not asked, as no cosine tells doubles from others: with MiniLM "from Rome to Bonn" and "from
Bonn to Rome" have 0.99, "at nine" and "at ten" 0.88, and so has "I prefer tea to coffee" with "I'd rather drink tea
than coffee". An item that is merged wrongly is a fact that is lost.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from agents.rules.languages import ENGLISH_PLACE, LANGUAGES, language_of
from agents.rules.words import terms
from schemas.memories import Memory

FILLERS: Mapping[str, str] = {
    "english": "a an the really very just so also actually definitely truly quite simply",
    "german": "der die das den dem des ein eine einen einem einer eines wirklich sehr echt auch",
    "spanish": "el la los las un una unos unas realmente muy tambien",
    "french": "le la les un une vraiment tres aussi",
}
"""Words that say nothing by themselves: articles and intensifiers of the languages in which items are found."""

FEWEST_WORDS = 3
"""A shorter text is the same as another by chance."""


class Line(NamedTuple):
    """What is compared of an item."""

    memory_id: str
    content_hash: str
    said_first: datetime
    sameness: tuple[str, ...]


def line_of(item: Memory) -> Line:
    """An item as it is compared."""
    known = item.item
    first = (known.valid_from if known else None) or item.occurred_at
    words = _telling(terms(item.text))
    kind = (item.type, (known.kind if known else None) or "", (known.claim if known else None) or "")
    return Line(item.memory_id, item.content_hash, first, (*kind, *words) if len(words) >= FEWEST_WORDS else ())


def duplicates(lines: Iterable[Line]) -> list[tuple[Line, Line]]:
    """The items that say nothing of their own, each with the oldest that says it."""
    groups: defaultdict[tuple[str, ...], list[Line]] = defaultdict(list)
    for line in lines:
        if line.sameness:
            groups[line.sameness].append(line)
    found = []
    for group in groups.values():
        oldest, *others = sorted(group, key=lambda line: (line.said_first, line.memory_id))
        found += [(other, oldest) for other in others]
    return found


def _telling(words: list[str]) -> list[str]:
    fillers = FILLERS.get(LANGUAGES[language_of(words) or ENGLISH_PLACE], "").split()
    return [word for word in words if word not in fillers]
