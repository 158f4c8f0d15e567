"""What the agents tell each other over topics: past tense, keyed by the boundary, complete in themselves."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.memories import Memory


class Remembered(BaseModel):
    """A memory was accepted or changed, and its vector is due. The record is the one of that moment."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["remembered.v1"] = Field(default="remembered.v1", alias="schema")
    memory: Memory


class Embedded(BaseModel):
    """A memory's vector is in the index, could not be made, or was found to be missing or of another space.

    `content_hash` is that of the text which was embedded: the record may have moved on meanwhile.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["embedded.v1"] = Field(default="embedded.v1", alias="schema")
    memory_id: str
    content_hash: str
    status: Literal["ready", "failed", "stale"]
    space: str
    at: datetime
    error: str | None = None
