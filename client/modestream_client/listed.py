"""Pages of lists: what is there, without a question."""

from typing import Any

from pydantic import BaseModel, Field

from modestream_client.hits import MemoryFields


class ListedMemory(MemoryFields):
    """One memory of a list. `importance` is the one that the turn was given, `superseded_by` a memory id.

    `resources` are the turn's attachments, as they were published; left out where there are none. No search finds a
    memory that is not `searchable`.
    """

    importance: float | None
    metadata: dict[str, Any]
    resources: tuple[dict[str, Any], ...] = Field(default=(), exclude_if=lambda resources: not resources)
    superseded_by: str | None
    searchable: bool = Field(default=True, exclude_if=lambda searchable: searchable)


class ListedConversation(BaseModel):
    """A conversation by its matching turns: how many, the times of the first and the last, and how many by mode."""

    conversation_id: str
    scope: dict[str, str]
    turns: int
    first: str
    last: str
    speakers: list[str]
    modes: dict[str, int]


class ListedProject(BaseModel):
    """A project by its matching memories; `conversations` counts those with a matching turn."""

    scope: dict[str, str]
    memories: int
    conversations: int
    first: str
    last: str
    modes: dict[str, int]


class ListResult(BaseModel):
    """One page. `next` is the cursor of the next page, None at the end; `total` counts all that match."""

    items: list[ListedMemory] | list[ListedConversation] | list[ListedProject]
    next: str | None
    total: int
