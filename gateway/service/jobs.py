"""Long work: consolidations and jobs, waited for, or left alone and asked about later on any gateway.

A job's id is its kind, and the place of its request in its topic: known as soon as the request is written.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from modestream_client.records import build_record

from gateway.service.answers import result_of
from gateway.service.calls import Call
from gateway.service.requests import CheckedRequests, refused_by_service
from gateway.service.wire import Json

JobKind = Literal["backfill", "rebuild", "reconcile", "retry_failed", "compare_embedders", "refresh"]
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
CONSOLIDATE = "consolidate"


class Jobs:
    """Runs of long work. `scope` has the project and no user. All raise Refused."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def run(self, call: Call, kind: JobKind, scope: Json, arguments: Mapping[str, Any]) -> Json:
        """Run a job over the user's vectors and return its counts."""
        return result_of(await self._requests.command(call, kind, scope, arguments))

    async def consolidate(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Consolidate the scope and return what was created and superseded."""
        reply, _ = await self._requests.send(call, CONSOLIDATE, self._trigger(call, scope, fields), "manage")
        return result_of(reply)

    async def start(self, call: Call, kind: JobKind, scope: Json, arguments: Mapping[str, Any]) -> str:
        """Start a job, and return its id as soon as it is written."""
        full = self._requests.full_scope(call, scope)
        record = build_record("command.v1", command=kind, scope=full, arguments=arguments)
        return await self._start(call, kind, "commands", record)

    async def start_consolidation(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> str:
        """Start a consolidation, and return its id as soon as it is written."""
        return await self._start(call, CONSOLIDATE, CONSOLIDATE, self._trigger(call, scope, fields))

    async def result(self, call: Call, job_id: str) -> Json | None:
        """Return what the run itself answers, None while it runs. Raises Refused as the run would have."""
        shown = (await self._requests.command(call, "get_job", {}, {"job_id": job_id})).result
        if shown["state"] == "running":
            return None
        if (error := shown.get("error")) is not None:
            raise refused_by_service(error["code"], error["message"], error.get("field"))
        result: Json = shown["result"]
        warnings = shown.get("warnings") or ()
        return {**result, "warnings": list(warnings)} if warnings else result

    async def _start(self, call: Call, kind: str, topic: str, record: Json) -> str:
        written = await self._requests.write(call, topic, record, "manage")
        return f"{kind}-{written.partition}-{written.offset}"

    def _trigger(self, call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        return build_record("consolidate.v1", **{**fields, "scope": self._requests.full_scope(call, scope)})
