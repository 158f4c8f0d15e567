"""Retrieve requests and results (docs/contract.md)."""

from typing import Annotated, Any, Literal

from modestream_client.arguments import GivenFilters
from modestream_client.hits import Hit
from modestream_client.vocabulary import MemoryType, Moment, Strategy
from pydantic import BaseModel, Field

from schemas.scopes import Selector

MAX_QUERY_LENGTH = 32768
"""Maximum characters of a query: the same as of a turn's content."""

ModeNames = str | Annotated[list[str], Field(fail_fast=True)] | None
"""One mode, several, or `*`; None is the request's current mode.

A list ends at its first invalid value: an error for each of millions would take gigabytes.
"""

MemoryTypes = Annotated[list[MemoryType], Field(fail_fast=True)]


class RetrieveRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`retrieve.v1`."""

    scope: Selector
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    mode: ModeNames = None
    conversation_id: str | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    min_score: Annotated[float, Field(ge=0, le=1)] = 0.0
    types: MemoryTypes | None = None
    since: Moment | None = None
    until: Moment | None = None
    depth: Literal["items", "auto"] = "items"
    filters: GivenFilters = None
    as_of: Moment | None = None
    read_after: Annotated[int, Field(ge=0)] | None = None
    explain: bool = False
    include_superseded: bool = False
    rerank: bool | Literal["local"] | None = None
    """Whether a language model orders the best hits, or with `local` the cross-encoder; None is the deployment's
    default."""
    sufficiency: Literal["rules", "model"] | None = None
    """Whether a model or rules decide with `depth` `auto` that a layer suffices; None is the deployment's default."""


class RetrieveResult(BaseModel):
    """The result of a retrieve request; hits best first."""

    hits: list[Hit]
    modes: list[str]
    strategy: Strategy
    intention: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = Field(default_factory=list)
    diagnostics: dict[str, Any] = Field(default_factory=dict)
