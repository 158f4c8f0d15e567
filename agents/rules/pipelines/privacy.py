"""Whether a part of the state may be given to a step that asks a language model. Pure."""

from collections.abc import Mapping
from typing import Any

from schemas.messages.turns import Turn
from schemas.state.memories import Memory


def is_private(state: Mapping[str, Any]) -> bool:
    """True if the state has a private turn, memory or hit, which no language model reads."""
    turn, memory = state.get("turn"), state.get("memory")
    if isinstance(turn, Turn) and turn.private:
        return True
    if isinstance(memory, Memory) and memory.visibility.private:
        return True
    if any(hit.private for hit in state.get("hits", ())):
        return True
    return any(source.visibility.private for source in state.get("turns", ()))
