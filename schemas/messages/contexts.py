"""`context.v1` and `rating.v1`: what contexts and answers were based on, and what was said of it; without any text."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from modestream_client.vocabulary import InteractionMode
from pydantic import BaseModel, Field

from schemas.scopes import PROJECT_FIELD

ContextKind = Literal["assemble", "answer"]

ScopeSelection = dict[str, str | list[str]]
"""The selector of a read, as it was permitted: per field one value, several, or `*`."""


class LoggedReference(BaseModel, frozen=True):
    """A memory of a context. `offset` is that of the record with its text on the topic of turns; None if derived."""

    memory_id: str
    version: int
    section: str
    score: float | None = None
    tokens: int
    offset: int | None = Field(default=None, exclude_if=lambda offset: offset is None)


class LoggedContext(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """`context.v1`, one record of the topic `contexts`."""

    schema_: Literal["context.v1"] = Field(default="context.v1", alias="schema")
    context_id: str
    scope: ScopeSelection
    at: datetime
    kind: ContextKind
    mode: str | list[str]
    interaction_mode: InteractionMode
    revision: int
    principal: str | None = None
    query_sha256: str
    references: tuple[LoggedReference, ...] = ()
    dropped: tuple[str, ...] = ()
    tokens: dict[str, int] = Field(default_factory=dict)

    def is_within(self, projects: tuple[str, ...] | None) -> bool:
        """True if it was made of these projects alone; None is all of them."""
        selected = self.scope[PROJECT_FIELD]
        return projects is None or {*([selected] if isinstance(selected, str) else selected)} <= {*projects}


class Rating(BaseModel, frozen=True, populate_by_name=True):
    """`rating.v1`, on the topic `contexts`: which memories of a context were of use, and which were not."""

    schema_: Literal["rating.v1"] = Field(default="rating.v1", alias="schema")
    context_id: str
    rating_id: str
    scope: ScopeSelection
    at: datetime
    mode: str | list[str]
    revision: int
    principal: str | None = None
    useful: tuple[str, ...] = ()
    not_useful: tuple[str, ...] = ()


def selection_of(fields: Mapping[str, tuple[str, ...] | None]) -> ScopeSelection:
    """Return a selector's fields as records have them."""
    return {
        name: "*" if values is None else values[0] if len(values) == 1 else list(values)
        for name, values in fields.items()
    }


def query_digest(query: str) -> str:
    return hashlib.sha256(query.encode("utf-8", "replace")).hexdigest()
