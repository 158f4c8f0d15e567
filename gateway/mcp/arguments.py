"""The arguments of the tools. Descriptions are read by a language model, in every conversation: each word counts."""

from typing import Annotated

from modestream_client.vocabulary import DEFAULT_BUDGET_TOKENS, Role
from pydantic import BaseModel, Field

from schemas.messages.assemble import MIN_BUDGET_TOKENS
from schemas.messages.retrieval import MAX_QUERY_LENGTH
from schemas.messages.turns import MAX_CONTENT_LENGTH

PAGE_ITEMS = 20
"""Memories of a page where the model names no number: some 1,000 tokens."""

CONVERSATION = "mcp"
"""The conversation of statements that name none."""

Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
ReadMode = Annotated[str | None, Field(description="A mode of list_modes, or * for all")]
ReadProject = Annotated[str | None, Field(description="A project, or * for all")]
MemoryId = Annotated[str, Field(min_length=1, description="As other tools return it")]
Time = Annotated[str | None, Field(description="ISO 8601 with offset, as 2026-03-01T09:30:00Z")]


class NoArguments(BaseModel, extra="forbid"):
    """A tool without arguments."""


class SearchMemory(BaseModel, extra="forbid"):
    """What to look for. `since` ≤ time < `until`."""

    query: Query
    mode: ReadMode = None
    project_id: ReadProject = None
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    since: Time = None
    until: Annotated[str | None, Field(description="As since; not included")] = None


class AddMemory(BaseModel, extra="forbid"):
    """What to remember."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_LENGTH)]
    conversation_id: Annotated[str, Field(min_length=1)] = CONVERSATION
    mode: Annotated[str | None, Field(description="A mode of list_modes; chosen if left out")] = None
    project_id: str | None = None
    role: Role = "user"
    speaker: Annotated[str | None, Field(description="Name of the person who said it")] = None
    occurred_at: Annotated[str | None, Field(description="When it was said, ISO 8601 with offset; now if left out")] = (
        None
    )


class ListMemories(BaseModel, extra="forbid"):
    """Which page of which memories."""

    mode: ReadMode = None
    project_id: ReadProject = None
    limit: Annotated[int, Field(ge=1, le=500)] = PAGE_ITEMS
    cursor: Annotated[str | None, Field(description="next of the page before")] = None


class OneMemory(BaseModel, extra="forbid"):
    """One memory by its id."""

    memory_id: MemoryId


class SetMemoryMode(OneMemory):
    """A memory, and where it belongs."""

    mode: Annotated[str, Field(description="A mode of list_modes")]


class AssembleContext(BaseModel, extra="forbid"):
    """What the context is for."""

    query: Query
    conversation_id: Annotated[str | None, Field(description="Its latest turns are included")] = None
    mode: ReadMode = None
    budget_tokens: Annotated[int, Field(ge=MIN_BUDGET_TOKENS)] = DEFAULT_BUDGET_TOKENS


class DeclareMode(BaseModel, extra="forbid"):
    """A mode, by its name."""

    name: Annotated[str, Field(description="Lower-case letters, digits, - and _")]
    embedder: Annotated[str, Field(description="A preset, such as general")] = "general"
    description: str | None = None


class SetIntention(BaseModel, extra="forbid"):
    """Goals and constraints, each list as a whole."""

    goals: list[str] | None = None
    constraints: list[str] | None = None
