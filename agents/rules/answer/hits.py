"""Hits and warnings of an answer, and the best passages of long hits for one question. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from modestream_client.hits import Evidence, Hit, Passage, Scores
from modestream_client.vocabulary import MemoryType

from agents.rules.index.bm25 import Postings, idf
from agents.rules.index.columns import FloatArray
from agents.rules.ranking.rank_fusion import FusionMethod
from agents.rules.ranking.ranking import SCORE_DECIMALS
from agents.rules.text.sentences import Span
from schemas.models.vectors import Nearest
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
    as_of: datetime | None = None,
) -> Hit:
    """Return a memory as a hit, as of now or a time; `shown_as` replaces its type.

    The evidence of a turn is its whole text.
    """
    return Hit(
        **memory_fields(memory, shown_as, as_of),
        score=score,
        scores=scores,
        contributions=None if contributions is None else dict(contributions),
    )


def memory_fields(memory: Memory, shown_as: MemoryType | None = None, as_of: datetime | None = None) -> dict[str, Any]:
    """Return the fields that hits and lists share."""
    whole = Evidence(turn_id=memory.turn_id, start=0, end=len(memory.text)) if memory.turn_id else None
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
        "accepted_at": iso(memory.accepted_at),
        "edited_since": as_of is not None and memory.version > 1 and memory.latest_at > as_of,
        "evidence": memory.evidence or ((whole,) if whole else ()),
        "version": memory.version,
        "embedding_status": memory.embedding.status,
        "private": memory.visibility.private,
        "metadata": memory.metadata,
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


MAX_SHOWN_PASSAGES = 3
"""Maximum passages of a hit."""

PartScores = Mapping[int, float]
"""The scores of passages by their number in the text."""


def part_scores(nearest_of: Sequence[Nearest], memory_ids: Sequence[str]) -> Mapping[str, PartScores]:
    """Return the scores of the passages of these memories; empty for a memory that was not compared."""
    wanted = frozenset(memory_ids)
    scores: dict[str, dict[int, float]] = {}
    for nearest in nearest_of:
        if nearest.passages is None:
            continue
        name_of = {
            row: memory_id
            for memory_id, row in zip(nearest.memory_ids, nearest.rows.tolist(), strict=True)
            if memory_id in wanted
        }
        passages = nearest.passages
        for row in np.flatnonzero(np.isin(passages.rows, list(name_of))).tolist():
            by_part = scores.setdefault(name_of[int(passages.rows[row])], {})
            part = int(passages.parts[row])
            by_part[part] = max(by_part.get(part, -1.0), float(passages.scores[row]))
    return scores


def passage_coverage(postings: Sequence[Postings], number: int, passages: int, documents: int) -> FloatArray:
    """Return the share of the question that each passage of a text covers, terms weighted by idf; shape (passages,)."""
    covered = np.zeros(passages)
    weights = [idf(len(term.numbers), documents) for term in postings]
    for term, weight in zip(postings, weights, strict=True):
        row = int(np.searchsorted(term.numbers, number))
        if term.passages is not None and row < len(term.numbers) and term.numbers[row] == number:
            covered += weight * ((int(term.passages[row]) >> np.arange(passages)) & 1)
    return covered / (sum(weights) or 1.0)


def best_passages(
    spans: Sequence[Span], covered: FloatArray, cosines: PartScores, maxsims: PartScores
) -> tuple[Passage, ...]:
    """Return the best passages, best first, ties in the order of the text.

    The score is the mean of the cosine, the late interaction score and the share of the question's words, each in 0..1.
    Late interaction reads only the nearest passages: the others count as the worst of these.
    """
    unread = min(maxsims.values(), default=0.0)
    # The texts of a turn's resources are compared as a further passage, which has no offset.
    parts = range(len(spans))
    kinds: list[Sequence[float]] = [covered.tolist()]
    if cosines:
        kinds.append([cosines.get(part, 0.0) for part in parts])
    if maxsims:
        kinds.append([maxsims.get(part, unread) for part in parts])
    scores = [sum(min(max(score, 0.0), 1.0) for score in of_part) / len(kinds) for of_part in zip(*kinds, strict=True)]
    best = sorted(parts, key=lambda part: -scores[part])[:MAX_SHOWN_PASSAGES]
    return tuple(
        Passage(start=spans[part].start, end=spans[part].end, score=round(scores[part], SCORE_DECIMALS))
        for part in best
    )
