"""Pack memories into an assembled context, sections in order of importance. Pure.

A memory is kept once, in the first section that it fits; near-duplicates of kept memories are dropped. If the context
must shrink, the memory kept last is dropped first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from modestream_client.contexts import SECTIONS, Section
from modestream_client.vocabulary import ContextFormat

from agents.rules.context.formats import Entry
from agents.rules.text.overlap import ShingleIndex
from schemas.state.memories import Memory

MIN_ENTRY_TOKENS: Mapping[ContextFormat, int] = {"compact": 12, "full": 40}
"""Tokens of a short entry: around its text `cl100k_base` counts 9 in the compact format, 46 to 61 in the full one.
Limits the turns to read."""

MAX_WINDOW_TURNS = 1000
"""Maximum turns of a window, however large the budget: each is a record to read."""


def estimate_turns(tokens: int, context_format: ContextFormat) -> int:
    """Return how many turns this many tokens may hold."""
    return min(tokens // MIN_ENTRY_TOKENS[context_format], MAX_WINDOW_TURNS)


class SizedEntry(NamedTuple):
    """A memory, its entry, and the tokens of its line; the first entry of a day takes `day_tokens` more."""

    memory: Memory
    entry: Entry
    tokens: int
    day: str = ""
    day_tokens: int = 0


class ContextPacker:
    """A context being filled; `left` is the remaining room in tokens."""

    def __init__(self, room: int) -> None:
        self.left = room
        self._kept: dict[str, tuple[Section, SizedEntry]] = {}
        self._days: Counter[str] = Counter()
        self._dropped: dict[str, None] = {}
        self._repeated: set[str] = set()
        self._repeated_texts: set[str] = set()
        self._compared: dict[str, int] = {}
        """By text: the number of kept texts that do not cover it."""
        self._covered = ShingleIndex()

    def not_kept(self, memory_ids: Iterable[str]) -> list[str]:
        return [memory_id for memory_id in memory_ids if memory_id not in self._kept]

    def section(self, name: Section, room: int, *, contiguous: bool = False) -> "SectionFilling":
        """Start filling a section with memories that fit into `room`."""
        return SectionFilling(self, name, min(room, self.left), contiguous=contiguous)

    def offer(self, section: Section, ordered: Sequence[SizedEntry], room: int, *, contiguous: bool = False) -> None:
        """Offer all at once; see `SectionFilling`."""
        filling = self.section(section, room, contiguous=contiguous)
        for number, sized in enumerate(ordered):
            if not filling.offer(sized):
                self.drop(rest.memory.memory_id for rest in ordered[number:])
                return

    def drop_if_repeated(self, sized: SizedEntry) -> bool:
        """Drop a near-duplicate of a kept memory; such a memory does not count as missing."""
        text = sized.entry.text
        if text not in self._repeated_texts and not self._covered.covers(text, self._compared.get(text, 0)):
            self._compared[text] = len(self._covered)
            return False
        self._repeated_texts.add(text)
        self._repeated.add(sized.memory.memory_id)
        self.drop([sized.memory.memory_id])
        return True

    def cost(self, sized: SizedEntry) -> int:
        """Return the tokens that a memory would take."""
        return sized.tokens + (0 if self._days[sized.day] else sized.day_tokens)

    def keep(self, section: Section, sized: SizedEntry) -> None:
        self.left -= self.cost(sized)
        self._kept[sized.memory.memory_id] = section, sized
        self._days[sized.day] += 1
        self._covered.add(sized.entry.text)

    def kept(self, memory_id: str) -> SizedEntry | None:
        return self._kept[memory_id][1] if memory_id in self._kept else None

    def lengthen(self, sized: SizedEntry) -> None:
        """Show a longer text of a kept memory if there is room for it."""
        section, before = self._kept[sized.memory.memory_id]
        if 0 < sized.tokens - before.tokens <= self.left:
            self.left -= sized.tokens - before.tokens
            self._kept[sized.memory.memory_id] = section, sized

    def drop(self, memory_ids: Iterable[str]) -> None:
        """Record memories as dropped; keeping one later undoes it."""
        self._dropped.update(dict.fromkeys(memory_ids))

    def drop_least_important(self) -> bool:
        """Drop the memory kept last; return False if none is left."""
        if not self._kept:
            return False
        memory_id, (_, sized) = self._kept.popitem()
        self._days[sized.day] -= 1
        self.left += self.cost(sized)
        self.drop([memory_id])
        return True

    @property
    def dropped(self) -> list[str]:
        return self.not_kept(self._dropped)

    def is_missing(self, memory_id: str) -> bool:
        """Return whether a memory was dropped for lack of room, and no kept one says the same."""
        return memory_id in self._dropped and memory_id not in self._kept and memory_id not in self._repeated

    def has(self, memory_id: str) -> bool:
        return memory_id in self._kept

    def entries(self) -> list[Entry]:
        """Return the entries of kept memories, oldest first."""
        return [sized.entry for _, sized in self._in_order_of_time()]

    def sections(self) -> dict[Section, list[str]]:
        """Return the kept ids by section, oldest first."""
        packed = self._in_order_of_time()
        return {name: [sized.memory.memory_id for section, sized in packed if section == name] for name in SECTIONS}

    def tokens(self) -> dict[Section, int]:
        counts = dict.fromkeys(SECTIONS, 0)
        for section, sized in self._kept.values():
            counts[section] += sized.tokens
        return counts

    def _in_order_of_time(self) -> list[tuple[Section, SizedEntry]]:
        return sorted(self._kept.values(), key=lambda packed: (packed[1].memory.occurred_ms, packed[1].memory.source))


class SectionFilling:
    """A section being filled, the most important memory first.

    `contiguous`: the section ends at the first memory that does not fit, so that no older turn is kept without the
    newer ones. A memory larger than the whole room is skipped instead, as it would leave the section empty.
    """

    def __init__(self, packer: ContextPacker, name: Section, room: int, *, contiguous: bool) -> None:
        self._packer = packer
        self._name = name
        self._room = room
        self._left = room
        self._contiguous = contiguous

    @property
    def reach(self) -> int:
        """Tokens above which a memory is skipped, regardless of its content."""
        return self._room if self._contiguous else self._left

    def offer(self, sized: SizedEntry) -> bool:
        """Keep a memory if it fits, else drop it; False if the section has ended before it."""
        packer, cost = self._packer, self._packer.cost(sized)
        if packer.has(sized.memory.memory_id):
            return True
        if cost > self.reach:
            packer.drop([sized.memory.memory_id])
            return True
        if packer.drop_if_repeated(sized):
            return True
        if cost > self._left:
            return False
        packer.keep(self._name, sized)
        self._left -= cost
        return True
