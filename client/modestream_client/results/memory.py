"""Whole memories, as `get_memory` answers them."""

from typing import Any

from pydantic import BaseModel, Field

from modestream_client.hits import ShownMemory
from modestream_client.vocabulary import Decay, EmbeddingStatus, InteractionMode


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


class WholeMemory(ShownMemory, extra="allow"):
    """One memory with evidence, versions and what was understood. A distilled one has no turn and no role.

    `items` are the ids of what was extracted from a turn. No search finds it unless it is `searchable`, and no language
    model of the service reads a `private` one: by `own_visibility`, or by its mode. Fields that are not named here are
    kept in `model_extra`.
    """

    importance: float | None = None
    metadata: dict[str, Any] = Field({})
    resources: tuple[dict[str, Any], ...] = ()
    entities: tuple[str, ...] = ()
    decay: Decay | None = None
    embedding: VectorState
    superseded_by: str | None = None
    items: tuple[str, ...] = ()
    interaction_mode: InteractionMode | None = None
    interaction_confidence: float | None = None
    searchable: bool = True
    private: bool = False
    own_visibility: dict[str, bool] = Field({})
    versions: tuple[ShownVersion, ...] = ()
