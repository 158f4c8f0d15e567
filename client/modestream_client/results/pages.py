"""Pages of lists, parsed from replies."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from modestream_client.answers import Notice, Reply, parse_as

Item = TypeVar("Item", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list. `next` is the `cursor` of the next page, None at the end; `total` counts all that match."""

    items: tuple[Item, ...]
    next: str | None
    total: int
    warnings: tuple[Notice, ...] = ()


class _Place(BaseModel):
    next: str | None = None
    total: int
    items: list[object]


def page_of(reply: Reply, model: type[Item]) -> Page[Item]:
    """Parse the reply to a list request. Raises `MemoryServiceError` if it violates the contract."""
    place = parse_as(_Place, reply.result)
    return Page(tuple(parse_as(model, item) for item in place.items), place.next, place.total, reply.warnings)
