"""Whole memories, as `get_memory` answers them."""

from typing import Any

from pydantic import BaseModel

from modestream_client.hits import Evidence
from modestream_client.vocabulary import Decay, EmbeddingStatus, InteractionMode, MemoryType, ModeSource, Role


class VectorState(BaseModel, frozen=True):
    """The state of a memory's vector; `error` says why there is none."""

    status: EmbeddingStatus
    embedded_at: str | None = None
    error: str | None = None


class ShownVersion(BaseModel, frozen=True):
    """A text that the memory has had, by its hash."""

    version: int
    current: bool
    text_hash: str
    first_seen: str


class WholeMemory(BaseModel, extra="allow"):
    """One memory with evidence, versions and what was understood. A distilled one has no turn and no role.

    `items` are the ids of what was extracted from a turn. Fields that are not named here are kept in `model_extra`.
    """

    memory_id: str
    turn_id: str | None
    conversation_id: str | None
    scope: dict[str, str]
    type: MemoryType
    mode: str
    mode_source: ModeSource
    role: Role | None
    speaker: str | None
    text: str
    occurred_at: str
    importance: float | None = None
    metadata: dict[str, Any] = {}
    resources: tuple[dict[str, Any], ...] = ()
    entities: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...]
    decay: Decay | None = None
    embedding: VectorState
    superseded_by: str | None = None
    items: tuple[str, ...] = ()
    interaction_mode: InteractionMode | None = None
    interaction_confidence: float | None = None
    version: int
    versions: tuple[ShownVersion, ...] = ()
