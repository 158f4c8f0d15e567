"""Run records: how requests of a user went."""

from collections.abc import Mapping
from typing import Any

from gateway.service.answers import result_of
from gateway.service.calls import Call
from gateway.service.requests import CheckedRequests
from gateway.service.wire import Json


class RunRecords:
    """The command `list_runs`. Raises Refused."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def list(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Return the newest runs of the user, of all projects that the caller may read."""
        listed = result_of(await self._requests.command(call, "list_runs", scope, fields))
        return {**listed, "runs": [_for_callers(run) for run in listed["runs"]]}


def _for_callers(run: Json) -> Json:
    """Cut the prefix of the topic's name, as health does."""
    request = run.get("request")
    if not isinstance(request, dict):
        return run
    return {**run, "request": {**request, "topic": str(request.get("topic")).rpartition(".")[2]}}
