"""Two sets of memories compared by their keys, and what a deployment shows of one user, as one of the two.

`verify` compares the log with the table and the table with the lexical index, `compare` two deployments.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from modestream_client import MemoryClient
from modestream_client.answers import Json

from operations.deployment import run_command
from schemas.messages.boundaries import Boundary
from schemas.scopes import Scope

PAGE = 500
"""Items of one page."""

ITEM_TYPES = ("semantic", "procedural", "document", "state_object")
"""Types of what is extracted from turns: listed where `types` leaves out `episodic`."""

First = TypeVar("First")
Second = TypeVar("Second")


@dataclass(frozen=True, slots=True)
class Differences:
    """Sorted keys that the second lacks, that it has besides, and whose values differ; `equal` counts the others."""

    missing: list[str]
    extra: list[str]
    different: list[str]
    equal: int


def differences(
    first: Mapping[str, First], second: Mapping[str, Second], is_alike: Callable[[First, Second], bool]
) -> Differences:
    """Compare two mappings; `is_alike` compares the values of a key that both have. Pure."""
    common = sorted(first.keys() & second.keys())
    different = [key for key in common if not is_alike(first[key], second[key])]
    return Differences(
        missing=sorted(first.keys() - second.keys()),
        extra=sorted(second.keys() - first.keys()),
        different=different,
        equal=len(common) - len(different),
    )


class UserListing:
    """Lists what one user has, over the client."""

    def __init__(self, memory: MemoryClient, boundary: Boundary, scope_model: type[Scope]) -> None:
        self._memory = memory
        others = dict.fromkeys(set(scope_model.model_fields) - set(boundary.scope), "*")
        self._selector = {**boundary.scope, **others}

    async def memories(self) -> list[Json]:
        """Return all memories, superseded ones too: turns and distilled memories, then items."""
        listed = [memory async for memory in self._list("memories", include_superseded=True)]
        listed_ids = {memory["memory_id"] for memory in listed}
        items = self._list("memories", include_superseded=True, types=ITEM_TYPES)
        return listed + [memory async for memory in items if memory["memory_id"] not in listed_ids]

    async def scopes(self) -> list[dict[str, str]]:
        """Return the scopes with memories."""
        return [project["scope"] async for project in self._list("projects")]

    async def declared(self, scope: dict[str, str]) -> Json:
        """Return what is declared in a scope: modes with their embedders, defaults, and names of categories."""
        modes = await run_command(self._memory, "list_modes", scope)
        categories = await run_command(self._memory, "list_categories", scope)
        return {
            "modes": sorted([mode["name"], mode["embedder"]] for mode in modes["modes"]),
            "defaults": [modes["user_default"], modes["project_default"]],
            "categories": sorted(category["name"] for category in categories["categories"]),
        }

    async def _list(self, what: str, types: Sequence[str] | None = None, **filters: Any) -> AsyncIterator[Json]:
        cursor = None
        while True:
            wanted = {"schema": "list.v1", "scope": self._selector, "what": what, "limit": PAGE, "cursor": cursor}
            reply, _ = await self._memory.request("retrieve", {**wanted, "types": types and [*types], **filters})
            for item in reply.result["items"]:
                yield item
            if (cursor := reply.result["next"]) is None:
                return
