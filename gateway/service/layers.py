"""The layers above memories: categories, and the intention; and the health of a user's part."""

from collections.abc import Mapping
from typing import Any

from gateway.service.answers import result_of
from gateway.service.audit import audited
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.requests import CheckedRequests
from gateway.service.wire import Json


class Layers:
    """Commands on categories and the intention. `scope` has the project and no user. All raise Refused."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def list_categories(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Return the categories."""
        return await self._command(call, "list_categories", scope, fields)

    async def get_category(self, call: Call, scope: Json, name: str) -> Json:
        """Return one category. Raises Refused, `not_found`."""
        return await self._command(call, "get_category", scope, {"name": name})

    async def declare_category(self, call: Call, scope: Json, name: str, fields: Mapping[str, Any]) -> Json:
        """Declare a category, or describe it anew; return it."""
        return await self._command(call, "declare_category", scope, {**fields, "name": name})

    async def rename_category(self, call: Call, scope: Json, name: str, new_name: str) -> Json:
        """Rename a category; its items follow. Return it."""
        return await self._command(call, "rename_category", scope, {"name": name, "new_name": new_name})

    async def delete_category(self, call: Call, scope: Json, name: str) -> Json:
        """Delete a category; its items are uncategorised."""
        with audited(call, "delete_category", scope, category=name):
            return await self._command(call, "delete_category", scope, {"name": name})

    async def get_intention(self, call: Call, scope: Json) -> Json:
        """Return goals, constraints and what was derived."""
        return await self._command(call, "get_intention", scope, {})

    async def set_intention(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Set goals or constraints; return the intention."""
        return await self._command(call, "set_intention", scope, fields)

    async def health(self, call: Call, scope: Json) -> Json:
        """Return the state of the user's vectors, by mode, and of the deployment."""
        return _for_callers(await self._command(call, "health", scope, {}))

    async def _command(self, call: Call, name: str, scope: Json, arguments: Mapping[str, Any]) -> Json:
        try:
            return result_of(await self._requests.command(call, name, scope, arguments))
        except Refused as refused:
            refused.names_resource = refused.code == "not_found"
            raise


def _for_callers(health: Json) -> Json:
    """Cut what names topics and addresses: lag is by the last word of a topic."""
    shown = {name: value for name, value in health.items() if name != "service"}
    if isinstance(state := health.get("vector_index"), str):
        shown["vector_index"] = state.partition(":")[0]
    if isinstance(lag := health.get("lag"), dict):
        shown["lag"] = {topic.rpartition(".")[2]: behind for topic, behind in lag.items()}
    return shown
