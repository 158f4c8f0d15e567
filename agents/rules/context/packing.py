"""Which memories find room in an assembled context. Pure; sections are offered in order of importance.

Every memory is taken once, for the section that offers it first, and none that says what a kept one says already. What
was taken last is given up first.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agents.rules.text.shingles import ShingleIndex
from schemas.assemble import SECTIONS, Section
from schemas.memories import Memory


class SizedMemory(NamedTuple):
    """A memory as a line of JSON, and the tokens of that line."""

    memory: Memory
    line: str
    tokens: int


class ContextPacker:
    """A context that fills. `left` is what it still has room for, in tokens."""

    def __init__(self, room: int) -> None:
        self.left = room
        self._kept: dict[str, tuple[Section, SizedMemory]] = {}
        self._dropped: dict[str, None] = {}
        self._repeated: set[str] = set()
        self._covered = ShingleIndex()

    def not_kept(self, memory_ids: Iterable[str]) -> list[str]:
        """Those that are not kept already."""
        return [memory_id for memory_id in memory_ids if memory_id not in self._kept]

    def offer(self, section: Section, ordered: Sequence[SizedMemory], room: int, *, contiguous: bool = False) -> None:
        """Keep of these memories, the most important first, what fits into `room`.

        `contiguous`: the first one without room ends it, so that no older turn is kept where a newer one is not; but one
        that is larger than the whole room is passed over, as it would leave nothing.
        """
        left = room = min(room, self.left)
        for place, sized in enumerate(ordered):
            if sized.memory.memory_id in self._kept or self._repeats(sized.memory):
                continue
            if sized.tokens <= left:
                self._keep(section, sized)
                left -= sized.tokens
            elif contiguous and left < sized.tokens <= room:
                self.drop(rest.memory.memory_id for rest in ordered[place:])
                return
            else:
                self.drop([sized.memory.memory_id])

    def _repeats(self, memory: Memory) -> bool:
        """Whether a memory says what a kept one says; then it is dropped, and missed by nobody."""
        if not self._covered.covers(memory.text):
            return False
        self._repeated.add(memory.memory_id)
        self.drop([memory.memory_id])
        return True

    def _keep(self, section: Section, sized: SizedMemory) -> None:
        self._kept[sized.memory.memory_id] = section, sized
        self._covered.add(sized.memory.text)
        self.left -= sized.tokens

    def drop(self, memory_ids: Iterable[str]) -> None:
        """Name memories that found no room so far; what is kept later all the same is not dropped."""
        self._dropped.update(dict.fromkeys(memory_ids))

    def drop_least_important(self) -> bool:
        """Drop the least important memory; false where none is left."""
        if not self._kept:
            return False
        memory_id, (_, sized) = self._kept.popitem()
        self.left += sized.tokens
        self.drop([memory_id])
        return True

    @property
    def dropped(self) -> list[str]:
        """What found no room."""
        return self.not_kept(self._dropped)

    def is_missing(self, memory_id: str) -> bool:
        """Whether a memory was dropped for want of room, and nothing kept says the same."""
        return memory_id in self._dropped and memory_id not in self._kept and memory_id not in self._repeated

    def has(self, memory_id: str) -> bool:
        """Whether a memory is kept."""
        return memory_id in self._kept

    def lines(self) -> list[str]:
        """All that was kept, oldest first."""
        return [sized.line for _, sized in self._in_order_of_time()]

    def sections(self) -> dict[Section, list[str]]:
        """The ids that each section keeps, oldest first."""
        kept = self._in_order_of_time()
        return {name: [sized.memory.memory_id for section, sized in kept if section == name] for name in SECTIONS}

    def tokens(self) -> dict[Section, int]:
        """The tokens of what each section keeps."""
        counts = dict.fromkeys(SECTIONS, 0)
        for section, sized in self._kept.values():
            counts[section] += sized.tokens
        return counts

    def _in_order_of_time(self) -> list[tuple[Section, SizedMemory]]:
        return sorted(self._kept.values(), key=lambda kept: (kept[1].memory.occurred_ms, kept[1].memory.source))
