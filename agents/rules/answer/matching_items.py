"""Select the items inside a hit that match the question, and order the evidence of distilled memories. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from agents.rules.answer.term_coverage import TermCoverage
from schemas.memories import Evidence, Memory
from schemas.retrieval import ItemInside, RetrieveRequest

MIN_ITEM_COVERAGE = 0.2
"""Minimum term coverage of a matching item: one rare word in five. Chosen by reading, on our own chats."""

MAX_ITEMS_PER_HIT = 8
"""Best items of one hit; a long page has many segments."""


def match_items(items: Iterable[Memory], request: RetrieveRequest, coverage: TermCoverage) -> tuple[ItemInside, ...]:
    """Return the best items that match the question and the requested types, best first, ties by id."""
    shown = (_item_inside(item, coverage) for item in items if _is_requested(item, request))
    found = sorted(
        (one for one in shown if one.score >= MIN_ITEM_COVERAGE), key=lambda one: (-one.score, one.memory_id)
    )
    return tuple(found[:MAX_ITEMS_PER_HIT])


def rank_evidence(
    evidence: Sequence[Evidence], texts: Mapping[str, str], coverage: TermCoverage
) -> tuple[Evidence, ...]:
    """Sort evidence by the coverage of its turn's text (`texts` by memory id), keeping the order of ties."""
    shares = {memory_id: coverage.share(coverage.terms_in(text)) for memory_id, text in texts.items()}
    return tuple(sorted(evidence, key=lambda one: -shares.get(one.memory_id or "", 0.0)))


def _is_requested(item: Memory, request: RetrieveRequest) -> bool:
    live = item.superseded_by is None or request.include_superseded
    return live and (request.types is None or item.type in request.types)


def _item_inside(item: Memory, coverage: TermCoverage) -> ItemInside:
    return ItemInside(
        memory_id=item.memory_id,
        type=item.type,
        kind=item.item.kind if item.item else None,
        text=item.text,
        score=coverage.share(coverage.terms_in(item.text)),
    )
