"""Modes: list, declare, rename, delete, defaults, suggestions."""

from collections.abc import Mapping
from typing import Any

from gateway.service.answers import result_of
from gateway.service.audit import audited
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.requests import CheckedRequests
from gateway.service.wire import Json


class Modes:
    """Commands on the modes of a user. `scope` has the project and no user. All raise Refused."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def list(self, call: Call, scope: Json) -> Json:
        """Return the modes, and the defaults of the user and of the project."""
        return await self._command(call, "list_modes", scope, {})

    async def declare(self, call: Call, scope: Json, name: str, fields: Mapping[str, Any]) -> Json:
        """Declare a mode, or update it; return it."""
        return await self._command(call, "declare_mode", scope, {**fields, "name": name})

    async def rename(self, call: Call, scope: Json, name: str, new_name: str) -> Json:
        """Rename a mode; its memories follow. Return it."""
        return await self._named(call, "rename_mode", scope, {"name": name, "new_name": new_name})

    async def delete(self, call: Call, scope: Json, name: str, memories: str) -> Json:
        """Delete a mode; `memories` is `forget` or `move:<mode>`. Return the counts."""
        with audited(call, "delete_mode", scope, mode=name, memories=memories) as counts:
            result = await self._named(call, "delete_mode", scope, {"name": name, "memories": memories})
            counts |= {one: result[one] for one in ("forgotten", "moved") if one in result}
        return result

    async def set_default(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Set or clear the default mode; return the defaults in effect."""
        return await self._command(call, "set_default_mode", scope, fields)

    async def suggest(self, call: Call, scope: Json) -> Json:
        """Return groups of turns that fit no mode."""
        return await self._command(call, "suggest_modes", scope, {})

    async def _named(self, call: Call, command: str, scope: Json, arguments: Mapping[str, Any]) -> Json:
        try:
            return await self._command(call, command, scope, arguments)
        except Refused as refused:
            refused.names_resource = refused.field == "name" and refused.code == "unknown_mode"
            raise

    async def _command(self, call: Call, command: str, scope: Json, arguments: Mapping[str, Any]) -> Json:
        return result_of(await self._requests.command(call, command, scope, arguments))
