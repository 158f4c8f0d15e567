"""What a turn is answered with when it is accepted, or was forgotten. Pure."""

from agents.rules.memory.versions import TurnIdentity
from schemas.memories import Memory
from schemas.modes import GENERAL
from schemas.turns import Turn, TurnAccepted


def build_forgotten_acceptance(turn: Turn, identity: TurnIdentity) -> TurnAccepted:
    """What a turn that was forgotten is answered with: it stays so, and nothing is kept of it."""
    return TurnAccepted(
        memory_id=identity.memory_id,
        turn_id=identity.turn_id,
        mode=turn.mode or GENERAL,
        mode_source="caller" if turn.mode else "fallback",
        version=1,
        duplicate=True,
    )


def build_acceptance(memory: Memory, *, duplicate: bool) -> TurnAccepted:
    """What a turn is answered with that is this memory now, or was before."""
    return TurnAccepted(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id or "",
        mode=memory.mode,
        mode_source=memory.mode_source,
        version=memory.version,
        duplicate=duplicate,
    )
