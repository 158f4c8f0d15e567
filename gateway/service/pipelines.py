"""The pipelines of the deployment: shown, edited and rolled back by callers that may operate it."""

from collections.abc import Mapping
from typing import Any

from gateway.service.answers import result_of
from gateway.service.audit import audited
from gateway.service.calls import Call
from gateway.service.requests import CheckedRequests
from gateway.service.wire import Json


class Pipelines:
    """Commands of operators. All raise Refused, `not_allowed` for a caller without `operate` for all users."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def show(self, call: Call, revision: int | None) -> Json:
        """Return a revision with its steps, None for the current one."""
        return await self._command(call, "get_pipeline", {"revision": revision})

    async def revisions(self, call: Call, limit: int) -> Json:
        """Return the last revisions."""
        return await self._command(call, "list_revisions", {"limit": limit})

    async def edit(self, call: Call, fields: Mapping[str, Any]) -> Json:
        """Apply edits; return the revision that counts."""
        with audited(call, "edit_pipeline", {}):
            return await self._command(call, "edit_pipeline", fields)

    async def roll_back(self, call: Call, fields: Mapping[str, Any]) -> Json:
        """Make an earlier revision count again; return the new one."""
        with audited(call, "rollback_pipeline", {}, revision=fields["revision"]):
            return await self._command(call, "rollback_pipeline", fields)

    async def _command(self, call: Call, name: str, arguments: Mapping[str, Any]) -> Json:
        return result_of(await self._requests.operate(call, name, arguments))
