"""Which items of a turn a question is about, and which source of what was distilled tells most about it. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from agents.rules.answer.term_coverage import TermCoverage
from schemas.memories import Evidence, Memory
from schemas.retrieval import ItemInside, RetrieveRequest

MIN_ITEM_COVERAGE = 0.2
"""The share of a question's telling words, by weight, from which an item is about it: one rare word in five. With less
it shares what everything here shares. Chosen by reading, on our own chats."""

MAX_ITEMS_PER_HIT = 8
"""Items of one hit: of a turn with a long page the best segments."""


def match_items(items: Iterable[Memory], request: RetrieveRequest, sought: TermCoverage) -> tuple[ItemInside, ...]:
    """The items that match the question and the types asked for, best first, equal ones by id; the best of them."""
    shown = (_inside(item, sought) for item in items if _asked_for(item, request))
    found = sorted(
        (one for one in shown if one.score >= MIN_ITEM_COVERAGE), key=lambda one: (-one.score, one.memory_id)
    )
    return tuple(found[:MAX_ITEMS_PER_HIT])


def rank_evidence(evidence: Sequence[Evidence], texts: Mapping[str, str], sought: TermCoverage) -> tuple[Evidence, ...]:
    """The evidence whose turns (`texts` by memory id) speak most of the question first, else in its order."""
    shares = {memory_id: sought.share(sought.terms_in(text)) for memory_id, text in texts.items()}
    return tuple(sorted(evidence, key=lambda one: -shares.get(one.memory_id or "", 0.0)))


def _asked_for(item: Memory, request: RetrieveRequest) -> bool:
    """Whether the request may see this item, and wants its type."""
    live = item.superseded_by is None or request.include_superseded
    return live and (request.types is None or item.type in request.types)


def _inside(item: Memory, sought: TermCoverage) -> ItemInside:
    return ItemInside(
        memory_id=item.memory_id,
        type=item.type,
        kind=item.item.kind if item.item else None,
        text=item.text,
        score=sought.share(sought.terms_in(item.text)),
    )
