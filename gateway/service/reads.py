"""Questions that change nothing: search, contexts, lists and maps."""

from collections.abc import Mapping
from typing import Any, Literal

from gateway.service.answers import with_warnings
from gateway.service.calls import Call
from gateway.service.positions import with_offset
from gateway.service.requests import CheckedRequests
from gateway.service.wire import Json

Listed = Literal["memories", "conversations", "projects"]


class Reads:
    """Fields of a question without schema and user in; its result and `warnings` out.

    `scope` is a selector without the user; `read_after` among the fields is a place as writes answer it. All raise
    Refused.
    """

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def search(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Answer `retrieve.v1`."""
        return await self._ask(call, "retrieve.v1", scope, fields)

    async def assemble(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Answer `assemble.v1`."""
        return await self._ask(call, "assemble.v1", scope, fields)

    async def list(self, call: Call, what: Listed, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Answer `list.v1`."""
        return await self._ask(call, "list.v1", scope, {**fields, "what": what})

    async def map(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Answer `map.v1`."""
        return await self._ask(call, "map.v1", scope, fields)

    async def _ask(self, call: Call, schema: str, scope: Json, fields: Mapping[str, Any]) -> Json:
        located = await with_offset(call, self._requests, dict(fields))
        return with_warnings(await self._requests.ask(call, schema, scope, located))
