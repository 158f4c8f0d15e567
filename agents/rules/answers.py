"""Requests as filters, and records as hits: the wire's side of retrieval. Pure."""

from datetime import datetime

from schemas.memories import Evidence, Memory
from schemas.moments import iso
from schemas.retrieval import Hit, RetrieveRequest, Scores
from schemas.vectors import Where


def where_of(request: RetrieveRequest, mode: str) -> Where:
    """The request's filters as the indexes take them."""
    return Where(
        boundary=request.scope.boundary,
        scope=request.scope.fields(),
        modes=(mode,),
        types=None if request.types is None else tuple(request.types),
        since_ms=_milliseconds(request.since),
        until_ms=_milliseconds(request.until),
    )


def hit_of(memory: Memory, score: float, scores: Scores | None) -> Hit:
    """A memory as a hit; a turn's own evidence is its whole text."""
    own = Evidence(turn_id=memory.turn_id, start=0, end=len(memory.text)) if memory.turn_id else None
    return Hit(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id,
        conversation_id=memory.conversation_id,
        scope=memory.scope,
        type=memory.type,
        mode=memory.mode,
        mode_source=memory.mode_source,
        role=memory.role,
        speaker=memory.speaker,
        text=memory.text,
        occurred_at=iso(memory.occurred_at),
        score=score,
        scores=scores,
        evidence=memory.evidence or ((own,) if own else ()),
        version=memory.version,
        embedding_status=memory.embedding.status,
    )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
