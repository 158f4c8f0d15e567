"""Export turns as `turn.v1`, page by page: publishing them again changes nothing."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from modestream_client.operations import LIST_MEMORIES

from gateway.service.audit import audited
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.operations import Operations
from gateway.service.wire import Json

PAGE_ITEMS = 200
"""Turns of one page: some 300 kB with usual texts, never more than a reply may have."""

PAGE_WAIT_S = 30.0
"""Seconds that one page may take; the whole export may take as long as its reader does."""

SAME_FIELDS = ("turn_id", "scope", "conversation_id", "role", "speaker", "occurred_at", "mode", "importance")
"""Fields of a listed turn that the record has under the same name."""

FILTERS = ("searchable", "private")
"""Fields that a listed turn has where they are not the usual ones."""


class Export:
    """Pages of turns in, records out."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def turns(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> AsyncGenerator[list[Json]]:
        """Return the turns, oldest first, in pages. Raises Refused where not even the first page can be had."""
        asked = {**fields, "types": ["episodic"], "order": "oldest", "include_superseded": True, "limit": PAGE_ITEMS}
        return self._audited(call, scope, self._pages(call, scope, asked, await self._first(call, scope, asked)))

    async def _first(self, call: Call, scope: Json, asked: Json) -> Json:
        try:
            return await self._operations.run(LIST_MEMORIES, call, scope, asked)
        except Refused:
            with audited(call, "export", scope):
                raise

    async def _audited(self, call: Call, scope: Json, pages: AsyncIterator[list[Json]]) -> AsyncGenerator[list[Json]]:
        with audited(call, "export", scope) as counts:
            counts["turns"] = 0
            async for page in pages:
                yield page
                counts["turns"] += len(page)

    async def _pages(self, call: Call, scope: Json, asked: Json, page: Json) -> AsyncIterator[list[Json]]:
        while True:
            yield [turn_of(item) for item in page["items"] if item["turn_id"] is not None]
            if page["next"] is None:
                return
            later = replace(call, deadline=time.monotonic() + PAGE_WAIT_S)
            page = await self._operations.run(LIST_MEMORIES, later, scope, {**asked, "cursor": page["next"]})


def turn_of(item: Json) -> Json:
    """Return the record that this listed turn was made from, with the mode and the filters that it has now.

    Filters of its mode are the turn's own there: in a deployment without that mode they hold all the same.
    """
    same = {name: item[name] for name in SAME_FIELDS}
    filters = {name: item[name] for name in FILTERS if name in item}
    return {
        "schema": "turn.v1",
        **same,
        **filters,
        "content": item["text"],
        "resources": item.get("resources", []),
        "metadata": item["metadata"],
    }
