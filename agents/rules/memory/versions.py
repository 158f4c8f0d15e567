"""What a turn makes of the memory that it is: a new one, a further version, or nothing new (CONTRACT §4)."""

from dataclasses import dataclass
from datetime import datetime

from agents.rules.cues.intents import intent_of
from agents.rules.memory.identity import derive_memory_id, derive_turn_id, hash_texts
from agents.rules.text.dates import find_dates
from agents.rules.text.embedding_text import embedding_text
from agents.rules.text.entities import extract_entities
from schemas.memories import Embedding, Evidence, Memory, TextVersion, TurnUnderstanding
from schemas.modes import ModeSource
from schemas.turns import Turn


@dataclass(frozen=True, slots=True)
class TurnIdentity:
    """Which turn and which memory a published turn is."""

    turn_id: str
    memory_id: str
    recorded_at: datetime
    occurred_at: datetime
    text_hash: str


def identify_turn(turn: Turn, recorded_at: datetime) -> TurnIdentity:
    """Who a turn is; one without id or time gets them from its content and from its record's timestamp."""
    scope = turn.scope.model_dump()
    occurred_at = turn.occurred_at or recorded_at
    turn_id = turn.turn_id or derive_turn_id(scope, turn.conversation_id, turn.role, turn.content, occurred_at)
    identifier = derive_memory_id(scope, turn.conversation_id, turn_id)
    return TurnIdentity(turn_id, identifier, recorded_at, occurred_at, hash_texts([turn.content]))


def has_same_text(known: Memory | None, identity: TurnIdentity) -> bool:
    """Whether the text that stands is this turn's text already."""
    return known is not None and known.versions[known.current].text_hash == identity.text_hash


def is_redelivered(known: Memory, offset: int) -> bool:
    """Whether this very record made what stands: Kafka delivers again what a killed worker had not finished."""
    return known.latest == offset


def is_stale_redelivery(known: Memory, identity: TurnIdentity, offset: int) -> bool:
    """Whether this record is delivered again after one that replaced its text: older by place and by timestamp.

    By both, as places begin anew when a topic does; then a record with a new timestamp is a new one.
    """
    return offset < known.latest and identity.recorded_at <= known.latest_at


def next_memory(
    turn: Turn,
    identity: TurnIdentity,
    known: Memory | None,
    mode: tuple[str, ModeSource],
    offset: int,
    *,
    asks_model: bool,
) -> Memory:
    """The record after this turn. An edit keeps id, place and first time; its text and the rest are the turn's.

    `asks_model`: a language model is still to read it.
    """
    versions = _with_text(known.versions if known else (), identity)
    memory = Memory(
        memory_id=identity.memory_id,
        turn_id=identity.turn_id,
        conversation_id=turn.conversation_id,
        scope=turn.scope.model_dump(),
        boundary=turn.scope.boundary,
        mode=mode[0],
        mode_source=mode[1],
        role=turn.role,
        speaker=turn.speaker,
        text=turn.content,
        resources=turn.resources,
        metadata=turn.metadata,
        occurred_at=known.occurred_at if known and turn.occurred_at is None else identity.occurred_at,
        source=known.source if known else offset,
        latest=offset,
        latest_at=identity.recorded_at,
        importance=turn.importance,
        entities=extract_entities(turn.content),
        evidence=_evidence(turn, identity.turn_id),
        versions=versions,
        current=[version.text_hash for version in versions].index(identity.text_hash),
        content_hash="",
        # The last vector is of the text before; its place is kept, so that none is left behind.
        embedding=Embedding(place=known.embedding.place if known else None),
        reading=_read_by_rules(turn, identity, asks_model=asks_model),
    )
    return memory.model_copy(update={"content_hash": hash_texts([embedding_text(memory)])})


def _read_by_rules(turn: Turn, who: TurnIdentity, *, asks_model: bool) -> TurnUnderstanding:
    """What needs no vector and no model: intent and dates."""
    return TurnUnderstanding(
        status="pending" if asks_model else "rules",
        text_hash=who.text_hash,
        intent=intent_of(turn.content),
        times=find_dates(turn.content, who.occurred_at),
    )


def move_to_mode(memory: Memory, mode: tuple[str, ModeSource]) -> Memory:
    """The memory in another mode: its vector is due there. One that is ready says so by its hash, to be taken along."""
    before = memory.embedding
    taken = before.content_hash if before.status == "ready" else None
    embedding = Embedding(place=before.place, content_hash=taken)
    return memory.model_copy(update={"mode": mode[0], "mode_source": mode[1], "embedding": embedding})


def _with_text(versions: tuple[TextVersion, ...], who: TurnIdentity) -> tuple[TextVersion, ...]:
    if any(version.text_hash == who.text_hash for version in versions):
        return versions
    return (*versions, TextVersion(text_hash=who.text_hash, first_seen=who.recorded_at))


def _evidence(turn: Turn, turn_id: str) -> tuple[Evidence, ...]:
    """The whole text, and the whole text of each resource."""
    said = Evidence(turn_id=turn_id, start=0, end=len(turn.content))
    shown = [
        Evidence(turn_id=turn_id, start=0, end=len(resource.text), resource=resource.uri)
        for resource in turn.resources
        if resource.text
    ]
    return (said, *shown)
