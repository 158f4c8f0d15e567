"""Long work: consolidations and jobs, waited for, or left alone and asked about later on any gateway."""

from collections.abc import Mapping
from typing import Any, Literal

from modestream_client.records import build_record

from gateway.service.answers import result_of
from gateway.service.calls import Call
from gateway.service.requests import CheckedRequests
from gateway.service.wire import Json

JobKind = Literal["backfill", "rebuild", "reconcile", "retry_failed"]


class Jobs:
    """Runs of long work. `scope` has the project and no user. All raise Refused."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def run(self, call: Call, kind: JobKind, scope: Json, arguments: Mapping[str, Any]) -> Json:
        """Run a job over the user's vectors and return its counts."""
        return result_of(await self._requests.command(call, kind, scope, arguments))

    async def consolidate(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Consolidate the scope and return what was created and superseded."""
        reply, _ = await self._requests.send(call, "consolidate", _trigger(call, scope, fields), "manage")
        return result_of(reply)


def _trigger(call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
    return build_record("consolidate.v1", **{**fields, "scope": {**scope, "user_id": call.user_id}})
