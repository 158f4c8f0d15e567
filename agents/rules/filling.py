"""Which memories find room in an assembled context. Pure; sections are offered in order of importance.

Every memory is taken once, for the section that offers it first. What was taken last is given up first.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agents.rules.window import newest_that_fit
from schemas.assemble import SECTIONS, Section
from schemas.memories import Memory


class Sized(NamedTuple):
    """A memory as a line of JSON, and the tokens of that line."""

    memory: Memory
    line: str
    tokens: int


class Filling:
    """A context that fills. `left` is what it still has room for, in tokens."""

    def __init__(self, room: int) -> None:
        self.left = room
        self.dropped: list[str] = []
        self._kept: list[tuple[Section, Sized]] = []

    def offer(self, section: Section, newest_first: Sequence[Sized], room: int) -> None:
        """Keep of these memories what fits into `room` and into what is left."""
        fitting = newest_that_fit([sized.tokens for sized in newest_first], min(room, self.left))
        kept = set(fitting)
        self._kept += [(section, newest_first[place]) for place in fitting]
        self.left -= sum(newest_first[place].tokens for place in fitting)
        rest = [sized.memory.memory_id for place, sized in enumerate(newest_first) if place not in kept]
        self.dropped += reversed(rest)

    def drop(self, memory_ids: Iterable[str]) -> None:
        """Name memories that are not even offered."""
        self.dropped += memory_ids

    def give_up_one(self) -> bool:
        """Drop the least important memory; false where none is left."""
        if not self._kept:
            return False
        _, sized = self._kept.pop()
        self.left += sized.tokens
        self.dropped.append(sized.memory.memory_id)
        return True

    def lines(self) -> list[str]:
        """All that was kept, oldest first."""
        return [sized.line for _, sized in self._in_order_of_time()]

    def sections(self) -> dict[Section, list[str]]:
        """The ids that each section keeps, oldest first."""
        kept = self._in_order_of_time()
        return {name: [sized.memory.memory_id for section, sized in kept if section == name] for name in SECTIONS}

    def tokens(self) -> dict[Section, int]:
        """The tokens of what each section keeps."""
        return {name: sum(sized.tokens for section, sized in self._kept if section == name) for name in SECTIONS}

    def _in_order_of_time(self) -> list[tuple[Section, Sized]]:
        return sorted(self._kept, key=lambda kept: (kept[1].memory.occurred_ms, kept[1].memory.source))
