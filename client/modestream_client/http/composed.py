"""Commands that are one record on the wire and several requests to the gateway.

`set_memory_mode` and `set_memory_visibility` of several memories, and `forget` of a turn by its own id. Not in one
piece: after an error some are done, and the command again does the rest.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from modestream_client.answers import Reply
from modestream_client.failures import MemoryServiceError
from modestream_client.records import build_record
from modestream_client.transport import Json

Ask = Callable[[Json], Awaitable[Reply]]
"""Sends one record as one request."""

COUNTS = {"set_memory_mode": "moved", "set_memory_visibility": "changed"}
"""Commands on several memories, and the count in their result."""

CONCURRENT_CHANGES = 8
"""Requests under way at once: as many as an ordinary pool of connections keeps open."""

PAGE = 500
"""The largest page of a list."""


def compose(record: Json, ask: Ask) -> Coroutine[Any, Any, Reply] | None:
    """Return what carries out a record that takes several requests; None for one that takes one."""
    arguments = record.get("arguments") or {}
    if record.get("command") in COUNTS and "memory_ids" in arguments:
        return _change_all(record, arguments["memory_ids"], ask)
    if record.get("command") == "forget" and "turn_id" in arguments:
        return _forget_turn(record, ask)
    return None


async def _change_all(record: Json, memory_ids: list[str], ask: Ask) -> Reply:
    """Change memories; ids that are not there are skipped. Raises `not_found` if none is."""
    limit = asyncio.Semaphore(CONCURRENT_CHANGES)
    shared = {name: value for name, value in record["arguments"].items() if name != "memory_ids"}

    async def change(memory_id: str) -> MemoryServiceError | None:
        async with limit:
            try:
                await ask({**record, "arguments": {"memory_id": memory_id, **shared}})
            except MemoryServiceError as error:
                if error.code != "not_found":
                    raise
                return error
        return None

    missing = [error for error in await asyncio.gather(*map(change, memory_ids)) if error]
    if missing and len(missing) == len(memory_ids):
        raise missing[0]
    return Reply({COUNTS[record["command"]]: len(memory_ids) - len(missing)})


async def _forget_turn(record: Json, ask: Ask) -> Reply:
    """Look for the turn's memory in its conversation, and forget that."""
    scope, wanted = record["scope"], record["arguments"]
    cursor = None
    while True:
        page = (await ask(_page_request(scope, wanted["conversation_id"], cursor))).result
        for memory in page["items"]:
            if memory["turn_id"] == wanted["turn_id"]:
                return await ask({**record, "arguments": {"memory_id": memory["memory_id"]}})
        if (cursor := page["next"]) is None:
            return Reply({"forgotten": 0})


def _page_request(scope: Json, conversation_id: str, cursor: str | None) -> Json:
    return build_record(
        "list.v1",
        scope=scope,
        what="memories",
        conversation_id=conversation_id,
        types=["episodic"],
        include_superseded=True,
        limit=PAGE,
        cursor=cursor,
    )
