"""What many memories of one boundary share, written once: pure values with a textual form."""

import json
from dataclasses import dataclass
from typing import NamedTuple, Self

from schemas.memories import Memory
from schemas.modes import Decay
from schemas.vectors import MemoryFilter

ScopeItems = tuple[tuple[str, str], ...]
"""A scope as pairs in the order of the names, so that it can be a key."""

TURN_TYPE = "episodic"
"""The type of turns; on their shelf what has another type was distilled from them."""


class MemoryKind(NamedTuple):
    """What a read can ask for, and how fast it fades."""

    scope: ScopeItems
    mode: str
    type: str
    decay: Decay

    def admitted(self, where: MemoryFilter) -> bool:
        """Whether scope, mode and type are those that a read asks for."""
        return where.admits(self.mode, self.type, dict(self.scope))


@dataclass(frozen=True, slots=True)
class Trait:
    """A kind, the conversation of a turn (None for what was distilled from turns), and who speaks."""

    kind: MemoryKind
    conversation: str | None
    speaker: str | None

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """The trait of a memory."""
        kind = MemoryKind(tuple(sorted(memory.scope.items())), memory.mode, memory.type, memory.decay)
        return cls(kind, memory.conversation_id if memory.type == "episodic" else None, memory.speaker)

    def dumps(self) -> str:
        """The trait as text; equal traits give equal texts."""
        return json.dumps([self.kind, self.conversation, self.speaker], ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> Self:
        """The trait that was written by `dumps`."""
        [scope, mode, type_, decay], talk, speaker = json.loads(text)
        return cls(MemoryKind(tuple((name, value) for name, value in scope), mode, type_, decay), talk, speaker)
