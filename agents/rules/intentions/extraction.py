"""What one turn says of what its user is after: entries and signs. Pure.

Enters: everything that was found in a turn. Leaves: an entry for each item that is a goal, a constraint, an error or a
decision and that nothing has taken the place of, and for what a language model added; a sign for each sentence that
says that something is done. Guaranteed: the same in, the same out; nothing of a turn that is gone.
"""

import re
from collections.abc import Iterable
from itertools import islice

from agents.rules.cues.labels import SentenceLabel, sentences_with_labels
from agents.rules.memory.understanding import current_text_hash
from agents.rules.text.stem_overlap import content_stems, stem_coverage
from agents.rules.text.tokenizer import fold
from schemas.events import Learned
from schemas.intention import INTENTION_PARTS, IntentionEntry, IntentionPart, ResolutionSignal
from schemas.memories import Evidence, ItemKind, Memory, Role

PART_BY_ITEM_KIND: dict[ItemKind, IntentionPart] = {
    "goal": "goals",
    "constraint": "constraints",
    "safety": "constraints",
    "error": "blocking_errors",
    "decision": "decisions",
}
"""The list that items of a kind belong to."""

PARTS_BY_ROLE: dict[Role, frozenset[IntentionPart]] = {
    "user": frozenset(INTENTION_PARTS),
    "assistant": frozenset({"blocking_errors", "decisions"}),
    "system": frozenset({"constraints"}),
    "tool": frozenset({"blocking_errors"}),
}
"""What is taken from whom: nobody but the user says what the user wants, and a tool's output sets no rules."""

REPORTING_ROLES: frozenset[Role] = frozenset({"user", "assistant"})
"""Who may say that something is done. A page that a tool has read may say so, too."""

MAX_STATEMENT_CHARS = 1000
"""Characters of an entry or a sign: what is longer is no statement any more. The evidence has the whole."""

MAX_SIGNS_PER_TURN = 8
"""Sentences of one turn that are taken for signs, the first: a page of release notes has hundreds, and each is kept as
long as what it ends."""

MIN_SAME_COVERAGE = 0.7
"""How much of each of two texts of one turn is in the other where they say the same: the item is the exact one."""

NOT_DONE = re.compile(
    r"\b(?:if|once|unless|until|when|not|never|almost|nearly|hopefully|should|wenn|sobald|falls|nicht|fast|si|cuando"
    r"|casi|quand|presque|pas)\b|n't\b"
)
"""Folded words with which a sentence supposes or denies that something is done, or says when it would be."""

TurnStatements = tuple[tuple[tuple[IntentionPart, IntentionEntry], ...], tuple[ResolutionSignal, ...]]
"""The entries of a turn, each with its list, and its signs."""


def extract_statements(event: Learned) -> TurnStatements:
    """What a turn says, by its items, by its sentences, and by what a language model said of it."""
    turn = event.memory
    if turn is None:
        return (), ()
    found = [*_items(event, turn)]
    signs = [*islice(_signs(turn), MAX_SIGNS_PER_TURN)]
    if event.update is not None:
        found += [one for one in _by_model(event, turn) if not _told(one, found)]
        signs += [_sign(turn, text, "model") for text in _texts(event.update.resolved)]
    ordered = sorted(_once(found), key=lambda one: INTENTION_PARTS.index(one[0]))
    return tuple(ordered), tuple(sorted(dict.fromkeys(signs), key=lambda sign: (sign.source, sign.text)))


def _items(event: Learned, turn: Memory) -> Iterable[tuple[IntentionPart, IntentionEntry]]:
    heard = PARTS_BY_ROLE.get(turn.role or "user", frozenset())
    for item in event.items:
        part = PART_BY_ITEM_KIND.get(item.item.kind) if item.item and item.item.kind else None
        evidence = tuple(one for one in item.evidence if one.memory_id == turn.memory_id)
        if part in heard and evidence and item.superseded_by is None:
            names = () if item.item is None else tuple(one.name for one in item.item.categories)
            entry = _entry(turn, item.text, evidence)
            yield part, entry.model_copy(update={"item_id": item.memory_id, "categories": names})


def _by_model(event: Learned, turn: Memory) -> Iterable[tuple[IntentionPart, IntentionEntry]]:
    whole = Evidence(turn_id=turn.turn_id or "", start=0, end=len(turn.text), memory_id=turn.memory_id)
    for part in INTENTION_PARTS:
        for text in _texts(getattr(event.update, part)):
            yield part, _entry(turn, text, (whole,)).model_copy(update={"source": "model"})


def _told(one: tuple[IntentionPart, IntentionEntry], found: Iterable[tuple[IntentionPart, IntentionEntry]]) -> bool:
    """Whether an item says the same in the same list."""
    part, entry = one
    about = content_stems(entry.text)
    pairs = ((about, content_stems(other.text)) for where, other in found if where == part)
    return any(
        min(stem_coverage(here, there), stem_coverage(there, here)) >= MIN_SAME_COVERAGE for here, there in pairs
    )


def _signs(turn: Memory) -> Iterable[ResolutionSignal]:
    if turn.role not in REPORTING_ROLES:
        return
    works = set(sentences_with_labels(turn.text, SentenceLabel.RESOLVED))
    for text in sentences_with_labels(turn.text, SentenceLabel.RESOLVED | SentenceLabel.DONE):
        if not NOT_DONE.search(fold(text)):
            yield _sign(turn, text, "said").model_copy(update={"works": text in works})


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


def _sign(turn: Memory, text: str, source: str) -> ResolutionSignal:
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


def _texts(texts: Iterable[str]) -> list[str]:
    return [text.strip() for text in texts if text.strip()]


def _once(found: Iterable[tuple[IntentionPart, IntentionEntry]]) -> list[tuple[IntentionPart, IntentionEntry]]:
    """The first of those that say the same word for word."""
    firsts: dict[tuple[IntentionPart, str], tuple[IntentionPart, IntentionEntry]] = {}
    for part, entry in found:
        firsts.setdefault((part, entry.text), (part, entry))
    return list(firsts.values())
