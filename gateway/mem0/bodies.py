"""What mem0's clients send. A field that is not here is an error: nothing that was asked for is left out silently."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from schemas.messages.lists import MAX_PAGE_ITEMS
from schemas.messages.retrieval import MAX_QUERY_LENGTH

MAX_MESSAGES = 100
"""Messages of one request, as turns of one request (docs/contract.md)."""

DEFAULT_PAGE_ITEMS = 100
"""Memories of a list without `top_k`, as of mem0's server."""

MAX_PAGE = 1000
"""The last page that can be asked for by its number: each is reached through those before it."""

Filters = Annotated[
    dict[str, Any], Field(description="`user_id`, `agent_id` and `run_id`, also within `AND`; others are refused.")
]


class Mem0Ids(BaseModel):
    """The ids of a request. Without `user_id` it is the key's own user."""

    model_config = ConfigDict(extra="forbid", strict=True)

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None


class Mem0Message(BaseModel):
    """One message: it becomes one turn, as it is. `name` is its speaker."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: str
    content: str
    name: str | None = None


class Mem0Add(Mem0Ids):
    """Messages to store. `infer`, `version`, `output_format` and `async_mode` have no effect."""

    messages: Annotated[list[Mem0Message], Field(min_length=1, max_length=MAX_MESSAGES)]
    metadata: dict[str, Any] | None = None
    filters: Filters | None = None
    timestamp: Annotated[int, Field(ge=0, le=253_402_300_799, description="Seconds since 1970.")] | None = None
    infer: bool | None = None
    version: str | None = None
    output_format: str | None = None
    async_mode: bool | None = None


class Mem0Search(Mem0Ids):
    """A question. `limit` is an older name of `top_k`.

    `rerank`, `keyword_search`, `version` and `output_format` have no effect: every search is ranked, by words too.
    """

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    filters: Filters | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    rerank: bool | None = None
    keyword_search: bool | None = None
    version: str | None = None
    output_format: str | None = None


class Mem0Update(BaseModel):
    """The new text; `data` is its older name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str | None = None
    data: str | None = None


class Mem0Filter(Mem0Ids):
    """What to list."""

    filters: Filters | None = None


class Mem0ListQuery(Mem0Ids):
    """What to list, and how much of it."""

    top_k: Annotated[int, Field(ge=1, le=MAX_PAGE_ITEMS)] = DEFAULT_PAGE_ITEMS


class Mem0PageQuery(Mem0Ids):
    """A page by its number."""

    page: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 1
    page_size: Annotated[int, Field(ge=1, le=MAX_PAGE_ITEMS)] = DEFAULT_PAGE_ITEMS
