"""Events between agents: named in the past tense, self-contained, in the partition of their boundary.

The record's key is the boundary, and empty if a recovery publishes an event again: use the partition, not the key.
"""

from datetime import datetime
from typing import Annotated, Literal, Self

from modestream_client.vocabulary import EmbeddingErrorCode
from pydantic import BaseModel, Field

from schemas.state.interaction import Interaction
from schemas.state.memories import CategoryAssignment, Memory, VectorLocation
from schemas.state.understanding import IntentionUpdate, Understanding


class Remembered(BaseModel, frozen=True, populate_by_name=True):
    """A memory was accepted or changed, and its vector is due. `memory` is its record at that time.

    `strays` are locations that may hold outdated vectors of the memory, which must be removed.
    """

    schema_: Literal["remembered.v1"] = Field(default="remembered.v1", alias="schema")
    memory: Memory
    strays: tuple[VectorLocation, ...] = ()


class Forgotten(BaseModel, frozen=True, populate_by_name=True):
    """A memory was deleted; its vectors in `places` must be deleted too."""

    schema_: Literal["forgotten.v1"] = Field(default="forgotten.v1", alias="schema")
    memory_id: str
    places: tuple[VectorLocation, ...]

    @classmethod
    def last_in(cls, memory_id: str, location: VectorLocation | None) -> Self:
        """Return the event of a memory with its vector in this location, None if it has no vector."""
        return cls(memory_id=memory_id, places=() if location is None else (location,))


class Released(BaseModel, frozen=True, populate_by_name=True):
    """Vectors of a memory other than its present one are no longer wanted. `memory` is its record at that time."""

    schema_: Literal["released.v1"] = Field(default="released.v1", alias="schema")
    memory: Memory

    @property
    def memory_id(self) -> str:
        return self.memory.memory_id


class Embedded(BaseModel, frozen=True, populate_by_name=True):
    """A memory's vector was written, failed, waits for its model, must be rebuilt, or is not kept (`unkept`).

    `content_hash` is that of the embedded text and `mode` the mode that it was embedded for; the record may have
    changed since. `latest` is the offset of the turn with that text, None for items and for requests to re-embed.
    `interaction` is the interaction mode that rules found in the same pass, if it was unknown. `waiting`: the mode's
    model is not loaded, `error` and `code` say why; `stale`: re-embed; `again`: re-embed, and use the present vector
    until then; `kept`: this `space` of the mode already has the due vector; `lost`: in this `space` the index has lost
    a vector listed in `held`. `categories` match an item's vector, None if matching was skipped. `run` is the worker
    run that wrote the vector, None if unknown: the disk of another run may be lost. `held` are the digests of the other
    spaces of the mode that have a vector of the same text. `also` are further reports of the same boundary, without
    their own `also`.
    """

    schema_: Literal["embedded.v1"] = Field(default="embedded.v1", alias="schema")
    memory_id: str
    content_hash: str
    latest: int | None = None
    mode: str
    status: Literal["ready", "failed", "waiting", "stale", "again", "kept", "lost", "unkept"]
    space: str | None = None
    at: datetime
    error: str | None = None
    code: Annotated[EmbeddingErrorCode | None, Field(exclude_if=lambda code: code is None)] = None
    interaction: Interaction | None = None
    categories: tuple[CategoryAssignment, ...] | None = None
    run: str | None = None
    held: tuple[str, ...] = Field(default=(), exclude_if=lambda held: not held)
    also: tuple["Embedded", ...] = Field(default=(), exclude_if=lambda also: not also)

    def each(self) -> tuple["Embedded", ...]:
        """Return all reports, each by itself."""
        return (self.model_copy(update={"also": ()}), *self.also) if self.also else (self,)


class Refresh(BaseModel, frozen=True):
    """The job that repeats the understanding of turns."""

    job_id: str


class Understood(BaseModel, frozen=True, populate_by_name=True):
    """A language model was asked about a turn's text with this `text_hash`.

    `found` is its answer, None if it was invalid; `interaction` is the turn's interaction mode, read without the turns
    before it and with the model's vote. `revision` is that of the pipelines. `tokens` is the cost of the answer.
    `refresh` is set if the turn had been understood before: `found` then replaces the earlier answer.
    """

    schema_: Literal["understood.v1"] = Field(default="understood.v1", alias="schema")
    memory_id: str
    text_hash: str
    interaction: Interaction | None = None
    found: Understanding | None = None
    profile: str
    prompt: str
    at: datetime
    revision: int = 0
    tokens: int = 0
    refresh: Refresh | None = None


class Reread(BaseModel, frozen=True, populate_by_name=True):
    """The rules are to read a turn's text with this `text_hash` again: another release has read it.

    `revision` is that of the pipelines.
    """

    schema_: Literal["reread.v1"] = Field(default="reread.v1", alias="schema")
    memory_id: str
    text_hash: str
    refresh: Refresh
    at: datetime
    revision: int = 0


class Learned(BaseModel, frozen=True, populate_by_name=True):
    """Findings in a turn with items or signals; consumers replace data that they derived from the turn before.

    Most turns have neither and publish none; one that had some publishes the remaining ones, also when it is forgotten.
    `memory` is the turn, None if it was forgotten; `items` are the current items with the turn as evidence, without the
    evidence of other turns; `update` is a language model's answer on how the turn changes the user's intention.
    """

    schema_: Literal["learned.v1"] = Field(default="learned.v1", alias="schema")
    memory_id: str
    scope: dict[str, str]
    memory: Memory | None = None
    items: tuple[Memory, ...] = ()
    update: IntentionUpdate | None = None
