"""What the agents tell each other over topics: past tense, keyed by the boundary, complete in themselves."""

from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from schemas.aims import IntentionUpdate
from schemas.interaction import Interaction
from schemas.memories import CategoryAssignment, Memory, VectorLocation
from schemas.understanding import Understanding


class Remembered(BaseModel):
    """A memory was accepted or changed, and its vector is due. The record is the one of that moment.

    `strays` are places that may hold a vector of it and must not.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["remembered.v1"] = Field(default="remembered.v1", alias="schema")
    memory: Memory
    strays: tuple[VectorLocation, ...] = ()


class Forgotten(BaseModel):
    """A memory is gone, and so must be its vectors in these places."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["forgotten.v1"] = Field(default="forgotten.v1", alias="schema")
    memory_id: str
    places: tuple[VectorLocation, ...]

    @classmethod
    def last_in(cls, memory_id: str, place: VectorLocation | None) -> Self:
        """The event of a memory whose vector was in this place, or that had none."""
        return cls(memory_id=memory_id, places=() if place is None else (place,))


class Embedded(BaseModel):
    """A memory's vector is in the index, could not be made, waits for its model, or is missing there.

    `content_hash` is that of the text which was embedded, `mode` the one that it was embedded for: the record may
    have moved on meanwhile. `interaction` is what the turn is for, read by the rules from the same pass, where that was
    not known. `waiting`: the mode's model is not loaded, `error` says why; `stale`: make it again; `again`: the same,
    and until then the memory is found by the one that it has. `categories` are those that an item's vector fits, None
    where it was not looked at. `run` names the run of the worker that has written the vector, None where that is not
    known: another run's disk may be lost.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["embedded.v1"] = Field(default="embedded.v1", alias="schema")
    memory_id: str
    content_hash: str
    mode: str
    status: Literal["ready", "failed", "waiting", "stale", "again"]
    space: str | None = None
    at: datetime
    error: str | None = None
    interaction: Interaction | None = None
    categories: tuple[CategoryAssignment, ...] | None = None
    run: str | None = None


class Understood(BaseModel):
    """A language model has read a turn, as far as the text with `text_hash` goes.

    `found` is what it said, None where it answered nothing valid; `interaction` is what the turn is for as it reads by
    itself, its vote included.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["understood.v1"] = Field(default="understood.v1", alias="schema")
    memory_id: str
    text_hash: str
    interaction: Interaction | None = None
    found: Understanding | None = None
    profile: str
    prompt: str
    at: datetime


class Learned(BaseModel):
    """What was found in a turn, all of it: whoever keeps something of that turn replaces what he has by this.

    `memory` is the turn, None where it was forgotten; `items` are the items that rest on it now, as they stand, without
    what other turns give to them; `update` is what a language model said that the turn changes in what its user is
    after.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["learned.v1"] = Field(default="learned.v1", alias="schema")
    memory_id: str
    scope: dict[str, str]
    memory: Memory | None = None
    items: tuple[Memory, ...] = ()
    update: IntentionUpdate | None = None
