"""Extract intention entries and resolution signals from one turn. Pure.

Leaves: an entry for each current goal, constraint, error or decision among its items and for each that a language model
added; a signal for each sentence that reports something done. A forgotten turn gives nothing. A model's additions and
reports obey the rules for the role of the turn, as a model repeats what the turn asks it to.
"""

import re
from collections.abc import Iterable
from itertools import chain, islice, zip_longest

from modestream_client.hits import Evidence
from modestream_client.vocabulary import ItemKind, Role

from agents.rules.cues.labels import SentenceLabel, sentences_with_labels
from agents.rules.memory.understanding import current_text_hash
from agents.rules.text.overlap import content_stems, stem_coverage
from agents.rules.text.tokenizer import fold
from schemas.internal.events import Learned
from schemas.state.intention import INTENTION_PARTS, IntentionEntry, IntentionPart, ResolutionSignal
from schemas.state.memories import Memory
from schemas.state.understanding import IntentionUpdate

PART_BY_ITEM_KIND: dict[ItemKind, IntentionPart] = {
    "goal": "goals",
    "constraint": "constraints",
    "safety": "constraints",
    "error": "blocking_errors",
    "decision": "decisions",
}
"""The intention list that items of a kind belong to."""

PARTS_BY_ROLE: dict[Role, frozenset[IntentionPart]] = {
    "user": frozenset(INTENTION_PARTS),
    "assistant": frozenset({"blocking_errors", "decisions"}),
    "system": frozenset({"constraints"}),
    "tool": frozenset({"blocking_errors"}),
}
"""The lists that a role may contribute to: only the user states goals, and tool output sets no rules."""

REPORTING_ROLES: frozenset[Role] = frozenset({"user", "assistant"})
"""Roles that may report something done. Tool output may quote such sentences from any page."""

MAX_STATEMENT_CHARS = 1000
"""Maximum characters of an entry or a signal; a longer text is not a statement. The evidence covers the whole text."""

MAX_SIGNALS_PER_TURN = 8
"""Maximum signals of one turn, the first ones: a page of release notes has hundreds, and each is stored as long as the
entry that it resolves."""

MAX_MODEL_ENTRIES_PER_TURN = 8
"""Maximum entries that a language model adds for one turn, of all lists together."""

MIN_SAME_COVERAGE = 0.7
"""Mutual stem coverage from which an entry of the model repeats an item of the same turn; the item's text wins."""

NOT_DONE = re.compile(
    r"\b(?:if|once|unless|until|when|not|never|almost|nearly|hopefully|should|wenn|sobald|falls|nicht|fast|si|cuando"
    r"|casi|quand|presque|pas)\b|n't\b"
)
"""Folded words of a sentence that denies that something is done, or only supposes or schedules it."""

PlacedEntry = tuple[IntentionPart, IntentionEntry]
TurnStatements = tuple[tuple[PlacedEntry, ...], tuple[ResolutionSignal, ...]]
"""The entries of a turn, each with its list, and its signals."""


def extract_statements(event: Learned) -> TurnStatements:
    """Return the entries and signals of a turn: from its items, its sentences, and a language model's update."""
    turn = event.memory
    if turn is None:
        return (), ()
    entries = [*_entries_of_items(event, turn)]
    signals = [*islice(_signals(turn), MAX_SIGNALS_PER_TURN)]
    if event.update is not None:
        added = [entry for entry in _entries_by_model(event.update, turn) if not _repeats_entry(entry, entries)]
        entries += added[:MAX_MODEL_ENTRIES_PER_TURN]
        reported = _stripped(event.update.resolved) if turn.role in REPORTING_ROLES else []
        signals += [_signal(turn, text, "model") for text in reported[:MAX_SIGNALS_PER_TURN]]
    unique: dict[tuple[IntentionPart, str], PlacedEntry] = {}
    for part, entry in entries:
        unique.setdefault((part, entry.text), (part, entry))
    ordered = sorted(unique.values(), key=lambda placed: INTENTION_PARTS.index(placed[0]))
    return tuple(ordered), tuple(sorted(dict.fromkeys(signals), key=lambda signal: (signal.source, signal.text)))


def _entries_of_items(event: Learned, turn: Memory) -> Iterable[PlacedEntry]:
    allowed = PARTS_BY_ROLE.get(turn.role or "user", frozenset())
    for item in event.items:
        part = PART_BY_ITEM_KIND.get(item.item.kind) if item.item and item.item.kind else None
        # Documents are mostly written by others: they say nothing of what their reader is after.
        evidence = tuple(
            quote for quote in item.evidence if quote.memory_id == turn.memory_id and quote.resource is None
        )
        if part in allowed and evidence and item.superseded_by is None:
            names = () if item.item is None else tuple(category.name for category in item.item.categories)
            entry = _entry(turn, item.text, evidence)
            yield part, entry.model_copy(update={"item_id": item.memory_id, "categories": names})


def _entries_by_model(update: IntentionUpdate, turn: Memory) -> Iterable[PlacedEntry]:
    """Yield a model's additions to the lists that the turn's role may contribute to: the first of each list first."""
    whole = Evidence(turn_id=turn.turn_id or "", start=0, end=len(turn.text), memory_id=turn.memory_id)
    allowed = PARTS_BY_ROLE.get(turn.role or "user", frozenset())
    lists = [[(part, text) for text in _stripped(getattr(update, part))] for part in INTENTION_PARTS if part in allowed]
    for part, text in filter(None, chain.from_iterable(zip_longest(*lists))):
        yield part, _entry(turn, text, (whole,)).model_copy(update={"source": "model"})


def _repeats_entry(added: PlacedEntry, entries: Iterable[PlacedEntry]) -> bool:
    part, entry = added
    stems = content_stems(entry.text)
    others = (content_stems(other.text) for other_part, other in entries if other_part == part)
    return any(min(stem_coverage(stems, other), stem_coverage(other, stems)) >= MIN_SAME_COVERAGE for other in others)


def _signals(turn: Memory) -> Iterable[ResolutionSignal]:
    if turn.role not in REPORTING_ROLES:
        return
    for text in sentences_with_labels(turn.text, SentenceLabel.RESOLVED | SentenceLabel.DONE):
        if not NOT_DONE.search(fold(text)):
            works = bool(sentences_with_labels(text, SentenceLabel.RESOLVED))
            yield _signal(turn, text, "said").model_copy(update={"works": works})


def _entry(turn: Memory, text: str, evidence: tuple[Evidence, ...]) -> IntentionEntry:
    return IntentionEntry(
        text=text[:MAX_STATEMENT_CHARS],
        source="said",
        at=turn.occurred_at,
        offset=turn.source,
        evidence=evidence,
        conversation_id=turn.conversation_id,
        text_hash=current_text_hash(turn),
    )


def _signal(turn: Memory, text: str, source: str) -> ResolutionSignal:
    return ResolutionSignal.model_validate(
        {
            "text": text[:MAX_STATEMENT_CHARS],
            "source": source,
            "at": turn.occurred_at,
            "offset": turn.source,
            "memory_id": turn.memory_id,
            "text_hash": current_text_hash(turn),
            "conversation_id": turn.conversation_id,
        }
    )


def _stripped(texts: Iterable[str]) -> list[str]:
    return [text.strip() for text in texts if text.strip()]
