"""Hits and warnings of an answer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from modestream_client.hits import Evidence, Hit, Scores
from modestream_client.vocabulary import MemoryType

from agents.rules.ranking.rank_fusion import FusionMethod
from schemas.moments import iso
from schemas.state.memories import Memory

SearchWarning = tuple[str, str]
"""Code and message."""


def hit_of(
    memory: Memory,
    score: float,
    scores: Scores | None = None,
    contributions: Mapping[str, float] | None = None,
    *,
    shown_as: MemoryType | None = None,
) -> Hit:
    """Return a memory as a hit; `shown_as` replaces its type. The evidence of a turn is its whole text."""
    return Hit(
        **memory_fields(memory, shown_as),
        score=score,
        scores=scores,
        contributions=None if contributions is None else dict(contributions),
    )


def memory_fields(memory: Memory, shown_as: MemoryType | None = None) -> dict[str, Any]:
    """Return the fields that hits and lists share."""
    own = Evidence(turn_id=memory.turn_id, start=0, end=len(memory.text)) if memory.turn_id else None
    return {
        "memory_id": memory.memory_id,
        "turn_id": memory.turn_id,
        "conversation_id": memory.conversation_id,
        "scope": memory.scope,
        "type": shown_as or memory.type,
        "mode": memory.mode,
        "mode_source": memory.mode_source,
        "role": memory.role,
        "speaker": memory.speaker,
        "text": memory.text,
        "occurred_at": iso(memory.occurred_at),
        "evidence": memory.evidence or ((own,) if own else ()),
        "version": memory.version,
        "embedding_status": memory.embedding.status,
        "private": memory.visibility.private,
    }


def warn_degraded(reasons: Iterable[tuple[str, str]], *, cross_mode: bool) -> list[SearchWarning]:
    """Return a warning if vectors are missing, from pairs of mode and reason."""
    messages = dict.fromkeys(f"{mode}: {reason}" if cross_mode else reason for mode, reason in reasons)
    return [("degraded", "; ".join(messages))] if messages else []


def warn_cross_mode(modes: Sequence[str], method: FusionMethod) -> SearchWarning:
    """Return the warning that several vector spaces were searched, and how."""
    how = {
        "rank_fusion": "each was searched with its own embedder, and their ranks are fused",
        "lexical_merge": "they are ranked by words, entities, recency, importance and topics, without embedders",
    }
    return "cross_mode", f"cosines of {', '.join(modes)} can't be compared: {how.get(method, method)}"


def warn_other_modes(counts: Mapping[str, int]) -> list[SearchWarning]:
    """Return a warning if the scope has memories in modes that were not searched, with their counts."""
    modes = ", ".join(f"{mode} ({count})" for mode, count in counts.items())
    return [("other_modes", f"these modes have memories here and were not searched: {modes}")] if modes else []
