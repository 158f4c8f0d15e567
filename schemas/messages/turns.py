"""`turn.v1`: one turn of a conversation as published, and its result (docs/contract.md)."""

from typing import Annotated, Any

from modestream_client.vocabulary import MAX_ID_LENGTH, Identifier, ModeSource, Moment, Role
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError, to_json

from schemas.scopes import Scope
from schemas.state.memories import PublishedResource

MAX_CONTENT_LENGTH = 32768
"""Maximum code points of a turn's content (docs/contract.md)."""

MAX_PIECES = 16
"""Maximum turns of one message: a longer one is cut."""

MAX_RESOURCES = 100
"""Maximum resources of one turn. A small one grows sixfold as record and evidence, which must fit into a record."""

MAX_RESOURCE_NAME_LENGTH = 255
"""Maximum characters of a resource's media type, and of its hash: a type has 127 and 127 at most, a hash 64."""

MAX_METADATA_BYTES = 1024 * 1024
"""Maximum bytes of a turn's metadata as JSON, which may grow too: `1e15` becomes `1000000000000000.0`."""

MAX_METADATA_DEPTH = 64
"""Maximum nesting of a turn's metadata: JSON parsers stop at 200, and events and replies add levels."""


def _bounded(metadata: dict[str, Any]) -> dict[str, Any]:
    """Refuse metadata that could be read but not written."""
    if len(to_json(metadata)) > MAX_METADATA_BYTES:
        raise PydanticCustomError("too_long", "metadata has more than {most} bytes", {"most": MAX_METADATA_BYTES})
    if _depth(metadata) > MAX_METADATA_DEPTH:
        raise ValueError(f"metadata nests deeper than {MAX_METADATA_DEPTH} levels")
    return metadata


def _named_shortly(resources: tuple[PublishedResource, ...]) -> tuple[PublishedResource, ...]:
    """Refuse long names, which stored resources may have: they are read without this limit."""
    longest = max((len(name) for each in resources for name in (each.media_type, each.sha256) if name), default=0)
    if longest > MAX_RESOURCE_NAME_LENGTH:
        message = "a resource's media_type and sha256 have at most {most} characters"
        raise PydanticCustomError("too_long", message, {"most": MAX_RESOURCE_NAME_LENGTH})
    return resources


def _depth(value: object) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 0
    # A call for each of 200,000 numbers would take 50 ms.
    return 1 + max((_depth(inner) for inner in value if isinstance(inner, list | dict)), default=0)


class Turn(BaseModel, extra="ignore", strict=True, frozen=True):
    """A turn as published. Unknown fields are ignored.

    No search finds a turn that is not `searchable`, no language model reads a `private` one. None: as the turn that it
    edits, else neither.
    """

    turn_id: Identifier | None = None
    scope: Scope
    conversation_id: Identifier
    role: Role
    speaker: Annotated[str, Field(max_length=MAX_ID_LENGTH)] | None = None
    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_LENGTH)]
    occurred_at: Moment | None = None
    mode: str | None = None
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    resources: Annotated[
        tuple[PublishedResource, ...], Field(fail_fast=True, max_length=MAX_RESOURCES), AfterValidator(_named_shortly)
    ] = ()
    metadata: Annotated[dict[str, Any], AfterValidator(_bounded)] = Field(default_factory=dict)
    searchable: bool | None = None
    private: bool | None = None


def pieces_of(text: str) -> list[str]:
    """Return the texts of the turns that a message becomes: one, or several if very long; none if empty."""
    cuts = range(0, min(len(text), MAX_PIECES * MAX_CONTENT_LENGTH), MAX_CONTENT_LENGTH)
    return [text[cut : cut + MAX_CONTENT_LENGTH] for cut in cuts]


class TurnAccepted(BaseModel):
    """The result of a turn."""

    memory_id: str
    turn_id: str
    mode: str
    mode_source: ModeSource
    version: int
    duplicate: bool
