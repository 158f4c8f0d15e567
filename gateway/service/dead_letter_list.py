"""The last dead letters in memory, by time. Guaranteed: bounded; each letter once, however often it is read."""

from bisect import bisect_left, insort
from collections.abc import Iterator

from gateway.service.dead_letter import DeadLetter, LetterPlace

MAX_KEPT = 10_000
"""Letters that are kept, some 20 MB; earlier ones are in the log, for any Kafka tool."""


class DeadLetterList:
    """The letters, and which of them were published again. Belongs to one event loop."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._limit = limit
        self._ordered: list[tuple[tuple[int, LetterPlace], DeadLetter]] = []
        self._known: dict[LetterPlace, DeadLetter] = {}
        self._replayed: dict[LetterPlace, LetterPlace | None] = {}
        self.is_full = False
        """True once an earlier letter had to be left out."""

    def take(self, letter: DeadLetter) -> None:
        """Take a letter; one that was published again and refused again marks the letter before it."""
        if letter.place in self._known:
            return
        self._known[letter.place] = letter
        insort(self._ordered, (letter.order, letter), key=lambda one: one[0])
        if letter.replayed_from is not None:
            self._replayed[letter.replayed_from] = letter.place
        while len(self._ordered) > self._limit:
            self._drop(self._ordered.pop(0)[1])

    def find(self, place: LetterPlace) -> DeadLetter | None:
        """Return the letter at a place; None for one that is not kept."""
        return self._known.get(place)

    def newest(self, before: tuple[int, LetterPlace] | None = None) -> Iterator[DeadLetter]:
        """Yield letters, newest first, from before a letter's `order`."""
        end = len(self._ordered) if before is None else bisect_left(self._ordered, before, key=lambda one: one[0])
        return (self._ordered[place][1] for place in range(end - 1, -1, -1))

    def mark_replayed(self, place: LetterPlace) -> None:
        """Note that a letter was published again."""
        self._replayed.setdefault(place, None)

    def is_replayed(self, place: LetterPlace) -> bool:
        """True if the letter is known to have been published again: since this gateway started, or it came back."""
        return place in self._replayed

    def came_back(self, place: LetterPlace) -> LetterPlace | None:
        """Return the letter as which a letter came back after it was published again."""
        return self._replayed.get(place)

    def _drop(self, letter: DeadLetter) -> None:
        self.is_full = True
        del self._known[letter.place]
        self._replayed.pop(letter.place, None)
        if letter.replayed_from is not None and self._replayed.get(letter.replayed_from) == letter.place:
            del self._replayed[letter.replayed_from]
