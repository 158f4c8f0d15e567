"""Ids and hashes of memories, and their text versions: create a memory, add a version, recognise a repetition. Pure.

Ids are deterministic: replaying a turn gives the same memory id (docs/contract.md).
"""

import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from modestream_client.hits import Evidence
from modestream_client.records import canonical, derive_turn_id
from modestream_client.vocabulary import ModeSource

from agents.rules.cues.intents import intent_of
from agents.rules.memory.visibility import own_after_turn
from agents.rules.text.dates import find_dates
from agents.rules.text.passages import embedding_text
from agents.rules.text.tokenizer import extract_entities
from schemas.messages.turns import Turn, TurnAccepted
from schemas.state.memories import (
    ID_NAMESPACE,
    Embedding,
    Memory,
    Resource,
    TextVersion,
    TurnUnderstanding,
    derive_memory_id,
    hash_texts,
)
from schemas.state.modes import GENERAL

_MEANINGFUL_PUNCTUATION = frozenset("#@%&-")
"""Punctuation that belongs to a word: `-5`, `50%`, `C#`."""

KEPT_TEXTS = 256
"""Cached normalised texts: an item's id is needed three times while its turn is written, 0.1 ms each."""

_APOSTROPHES = str.maketrans("\u2018\u2019", "''")


def derive_item_id(scope: Mapping[str, str], mode: str, memory_type: str, text: str) -> str:
    """Return the id of an item: UUIDv5 of scope, mode, type and normalised text, so that repetitions share one id."""
    return str(uuid.uuid5(ID_NAMESPACE, canonical(["item", dict(scope), mode, memory_type, normalise_text(text)])))


def derive_distilled_id(scope: Mapping[str, str], mode: str, sources: Iterable[str]) -> str:
    """Return the id of a memory distilled from `sources`: UUIDv5 of scope, mode and the sorted source ids."""
    return str(uuid.uuid5(ID_NAMESPACE, canonical(["distilled", dict(scope), mode, sorted(sources)])))


@lru_cache(KEPT_TEXTS)
def normalise_text(text: str) -> str:
    """Casefold, apply NFKC, strip punctuation around words, and collapse white space."""
    pieces = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold().split()
    return " ".join(word for piece in pieces if (word := _strip_punctuation(piece))) or " ".join(pieces)


def _strip_punctuation(word: str) -> str:
    if word[0].isalnum() and word[-1].isalnum():
        return word
    start, end = 0, len(word)
    while start < end and _is_strippable(word[start]):
        start += 1
    while end > start and _is_strippable(word[end - 1]):
        end -= 1
    return "" if word[start:end] == "-" else word[start:end]


def _is_strippable(character: str) -> bool:
    is_punctuation = not character.isalnum() and unicodedata.category(character)[0] == "P"
    return is_punctuation and character not in _MEANINGFUL_PUNCTUATION


MAX_VERSIONS = 64
"""Maximum texts that a memory remembers by their hashes, the latest: 9 kB of its row, which every edit rewrites. A text
that comes back after more edits counts as a new one; a redelivered record is recognised by its offset."""


@dataclass(frozen=True, slots=True)
class TurnIdentity:
    """The ids, times and text hash of a published turn."""

    turn_id: str
    memory_id: str
    recorded_at: datetime
    occurred_at: datetime
    text_hash: str


def identify_turn(turn: Turn, recorded_at: datetime) -> TurnIdentity:
    """Identify a turn; a missing turn id is derived from the content, a missing time is the record's timestamp."""
    scope = turn.scope.model_dump()
    occurred_at = turn.occurred_at or recorded_at
    turn_id = turn.turn_id or derive_turn_id(scope, turn.conversation_id, turn.role, turn.content, occurred_at)
    memory_id = derive_memory_id(scope, turn.conversation_id, turn_id)
    return TurnIdentity(turn_id, memory_id, recorded_at, occurred_at, hash_texts([turn.content]))


def has_same_text(stored: Memory | None, identity: TurnIdentity) -> bool:
    return stored is not None and stored.versions[stored.current].text_hash == identity.text_hash


def is_redelivered(stored: Memory, offset: int) -> bool:
    """True if this very record was applied last: Kafka redelivers records that a killed worker had not committed."""
    return stored.latest == offset


def is_stale_redelivery(stored: Memory, identity: TurnIdentity, offset: int) -> bool:
    """True if this record is redelivered after a later one replaced its text: older by offset and by timestamp.

    Both are needed: a recreated topic starts at offset 0 again, and its new records have later timestamps.
    """
    return offset < stored.latest and identity.recorded_at <= stored.latest_at


def next_memory(
    turn: Turn,
    identity: TurnIdentity,
    stored: Memory | None,
    mode: tuple[str, ModeSource],
    offset: int,
    *,
    asks_model: bool,
) -> Memory:
    """Return the memory after this turn. An edit keeps id, `source` and first time; the rest is the turn's.

    It is filtered by the turn's own visibility, an edit's by default the former one; that of its mode is still missing.

    `asks_model`: a language model will be asked about it.
    """
    all_versions = stored.versions if stored else ()
    if all(version.text_hash != identity.text_hash for version in all_versions):
        all_versions = (*all_versions, TextVersion(text_hash=identity.text_hash, first_seen=identity.recorded_at))
    versions = all_versions[-MAX_VERSIONS:]
    dropped = (stored.dropped_versions if stored else 0) + len(all_versions) - len(versions)
    visibility = own_after_turn(turn.searchable, turn.private, stored)
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
        resources=tuple(Resource(**dict(resource)) for resource in turn.resources),
        metadata=turn.metadata,
        occurred_at=stored.occurred_at if stored and turn.occurred_at is None else identity.occurred_at,
        source=stored.source if stored else offset,
        latest=offset,
        latest_at=identity.recorded_at,
        importance=turn.importance,
        entities=extract_entities(turn.content),
        evidence=_evidence(turn, identity.turn_id),
        versions=versions,
        dropped_versions=dropped,
        current=[version.text_hash for version in versions].index(identity.text_hash),
        content_hash="",
        # The last vector belongs to the previous text; its location stays, so that it can be removed.
        embedding=Embedding(place=stored.embedding.place if stored else None),
        visibility=visibility,
        own_visibility=visibility,
        reading=TurnUnderstanding(
            status="pending" if asks_model else "rules",
            text_hash=identity.text_hash,
            intent=intent_of(turn.content),
            times=find_dates(turn.content, identity.occurred_at),
        ),
        first_accepted_at=stored.accepted_at if stored and dropped else None,
    )
    return memory.model_copy(update={"content_hash": hash_texts([embedding_text(memory)])})


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """A turn before it is stored. `memory` is the updated memory without its mode; None: nothing new."""

    identity: TurnIdentity
    stored: Memory | None
    memory: Memory | None


def draft_turn(turn: Turn, identity: TurnIdentity, stored: Memory | None, offset: int) -> TurnDraft:
    """Return the draft of a turn whose memory is `stored`; of a redelivered record the memory as it is."""
    if stored is None or not has_same_text(stored, identity):
        memory = next_memory(turn, identity, stored, (GENERAL, "fallback"), offset, asks_model=False)
        return TurnDraft(identity, stored, memory)
    return TurnDraft(identity, stored, stored if is_redelivered(stored, offset) else None)


def accept_draft(draft: Memory, mode: tuple[str, ModeSource], *, asks_model: bool, revision: int) -> Memory:
    """Return the draft with its mode; `revision` is the revision of the pipelines that handled the turn."""
    changes: dict[str, object] = {"mode": mode[0], "mode_source": mode[1], "revision": revision}
    if asks_model:
        changes["reading"] = draft.reading.model_copy(update={"status": "pending"})
    return draft.model_copy(update=changes)


def build_acceptance(memory: Memory, *, duplicate: bool) -> TurnAccepted:
    return TurnAccepted(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id or "",
        mode=memory.mode,
        mode_source=memory.mode_source,
        version=memory.version,
        duplicate=duplicate,
    )


def build_forgotten_acceptance(turn: Turn, identity: TurnIdentity) -> TurnAccepted:
    """Return the reply to a turn that was forgotten: it is not stored again."""
    return TurnAccepted(
        memory_id=identity.memory_id,
        turn_id=identity.turn_id,
        mode=turn.mode or GENERAL,
        mode_source="caller" if turn.mode else "fallback",
        version=1,
        duplicate=True,
    )


def move_to_mode(memory: Memory, mode: tuple[str, ModeSource]) -> Memory:
    """Move the memory to another mode; its vector is due there. A set `content_hash` allows reuse of a ready vector."""
    before = memory.embedding
    reusable_hash = before.content_hash if before.status == "ready" else None
    embedding = Embedding(place=before.place, content_hash=reusable_hash)
    return memory.model_copy(update={"mode": mode[0], "mode_source": mode[1], "embedding": embedding})


def _evidence(turn: Turn, turn_id: str) -> tuple[Evidence, ...]:
    content = Evidence(turn_id=turn_id, start=0, end=len(turn.content))
    described = [resource for resource in turn.resources if resource.text]
    return content, *(
        Evidence(turn_id=turn_id, start=0, end=len(resource.text or ""), resource=resource.uri)
        for resource in described
    )
