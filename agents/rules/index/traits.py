"""Attributes that many memories of one boundary share, stored once as text. Pure."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

from modestream_client.vocabulary import Decay

from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory

ScopeItems = tuple[tuple[str, str], ...]
"""A scope as hashable pairs, sorted by name."""

TURN_TYPE = "episodic"
"""The type of turns; memories of other types are distilled from turns."""

MAX_DUMPED_TRAITS = 1024
"""Serialised traits that are kept: the turns of a conversation share one."""


class MemoryKind(NamedTuple):
    """The attributes that a read filters by, and the decay."""

    scope: ScopeItems
    mode: str
    type: str
    decay: Decay

    def admitted(self, where: MemoryFilter) -> bool:
        """True if a read admits this scope, mode and type."""
        return where.admits(self.mode, self.type, dict(self.scope))


@dataclass(frozen=True, slots=True)
class Trait:
    """A kind, the speaker, and the conversation, which is None for memories distilled from turns."""

    kind: MemoryKind
    conversation: str | None
    speaker: str | None

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return the trait of a memory."""
        kind = MemoryKind(tuple(sorted(memory.scope.items())), memory.mode, memory.type, memory.decay)
        return cls(kind, memory.conversation_id if memory.type == TURN_TYPE else None, memory.speaker)

    def dumps(self) -> str:
        """Serialise the trait; equal traits give equal texts."""
        return _dumped(self)

    @classmethod
    def loads(cls, text: str) -> Self:
        """Parse a trait written by `dumps`."""
        [scope, mode, type_, decay], conversation, speaker = json.loads(text)
        return cls(MemoryKind(tuple((name, value) for name, value in scope), mode, type_, decay), conversation, speaker)


@lru_cache(MAX_DUMPED_TRAITS)
def _dumped(trait: Trait) -> str:
    return json.dumps([trait.kind, trait.conversation, trait.speaker], ensure_ascii=False, separators=(",", ":"))
