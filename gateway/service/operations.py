"""Execute the operations of the table: questions, commands, and long work with a later answer.

A job's id is its kind, and the position of its request in its topic: known as soon as the request is written.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from modestream_client.arguments import Forget
from modestream_client.failures import MemoryServiceError
from modestream_client.operations import ANSWER, GET_JOB, Operation
from modestream_client.records import Written
from modestream_client.transport import OnPartial

from gateway.service.access import audited, require_scope
from gateway.service.calls import RETRY_AFTER_S, Call, Json, Refused
from gateway.service.requests import CheckedRequests, refused_by_service, result_of, with_warnings

AUDITED: Mapping[str, Mapping[str, str]] = {
    "delete_mode": {"mode": "name", "memories": "memories"},
    "delete_category": {"category": "name"},
    "forget": {name: name for name in Forget.model_fields},
    "edit_pipeline": {},
    "rollback_pipeline": {"revision": "revision"},
}
"""Operations in the audit log: the argument behind each name in a line."""

SILENT_S = 60.0
"""Seconds without a report after which an import counts as interrupted: one comes every two."""

AUDITED_COUNTS = ("forgotten", "moved")
"""Counts of results in those lines."""


class Operations:
    """An operation, `scope` without the user, and fields or arguments in; the result out.

    A question's `scope` is a selector, its `read_after` a position as writes answer it, and its result has `warnings`.
    All raise Refused.
    """

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def run(
        self, operation: Operation[Any], call: Call, scope: Json, fields: Mapping[str, Any] | None = None
    ) -> Json:
        fields = fields or {}
        if operation.name not in AUDITED:
            return await self._run(operation, call, scope, fields)
        named = AUDITED[operation.name].items()
        about = {name: fields[argument] for name, argument in named if fields.get(argument) is not None}
        about = {"what": about} if operation.name == "forget" else about
        with audited(call, operation.name, scope, **about) as counts:
            result = await self._run(operation, call, scope, fields)
            counts |= {name: result[name] for name in AUDITED_COUNTS if name in result}
        return result

    async def answer(
        self, call: Call, scope: Json, fields: Mapping[str, Any], on_partial: OnPartial | None = None
    ) -> Json:
        """Return a language model's answer; `on_partial` gets its pieces as they come. Storing it is a write."""
        if fields.get("store") is not False:
            require_scope(call.caller, call.user_id, scope, "write")
        located = {**fields, "read_after": await self._offset_of(call, fields.get("read_after"))}
        return with_warnings(await self._requests.ask(ANSWER, call, scope, located, on_partial))

    async def start(self, operation: Operation[Any], call: Call, scope: Json, fields: Mapping[str, Any]) -> str:
        """Start long work, and return its id as soon as it is written."""
        record = self._requests.record_of(operation, call, scope, fields)
        written = await self._requests.write(call, operation.topic, record, operation.permission)
        return f"{operation.name}-{written.partition}-{written.offset}"

    async def result(self, call: Call, job_id: str) -> tuple[bool, Json]:
        """Return True and the answer of long work; while it runs False and its counts, if it has any.

        Raises its own Refused, and `unavailable` for an import that no longer reports.
        """
        job = (await self._requests.ask(GET_JOB, call, {}, {"job_id": job_id})).result
        if job["state"] == "running":
            heard_ms = job.get("reported_at_ms")
            if heard_ms is not None and time.time() - heard_ms / 1000 > SILENT_S:
                message = (
                    "this import no longer reports: it continues when its gateway is back; or send the export again,"
                    " nothing is stored twice"
                )
                raise Refused("unavailable", message, retry_after_s=RETRY_AFTER_S)
            return False, job.get("progress") or {}
        if (error := job.get("error")) is not None:
            raise refused_by_service(error["code"], error["message"], error.get("field"))
        result: Json = job["result"]
        warnings = job.get("warnings") or ()
        return True, {**result, "warnings": list(warnings)} if warnings else result

    async def _run(self, operation: Operation[Any], call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        if operation.kind == "question":
            located = {**fields, "read_after": await self._offset_of(call, fields.get("read_after"))}
            return with_warnings(await self._requests.ask(operation, call, scope, located))
        try:
            result = result_of(await self._requests.ask(operation, call, scope, fields))
        except Refused as refused:
            # An undeclared mode in a path is a missing resource.
            names = operation.http.names if operation.http else ()
            refused.names_resource = refused.code == "unknown_mode" and refused.field in names
            raise
        return FOR_CALLERS[operation.name](result) if operation.name in FOR_CALLERS else result

    async def _offset_of(self, call: Call, position: object) -> int | None:
        """Return the offset to read after, if any. Raises Refused for a position of another user's writes."""
        if position is None:
            return None
        try:
            written = Written.parse(str(position))
        except MemoryServiceError as error:
            raise Refused("invalid_value", error.message, "read_after") from None
        if written.partition != await self._requests.partition_of(call.user_id):
            raise Refused(
                "invalid_value", "read_after is a position of another user's writes; pass this user's", "read_after"
            )
        return written.offset


def _health_for_callers(health: Json) -> Json:
    """Remove names of topics and addresses: lag is by the last word of a topic."""
    shown = dict(health)
    if isinstance(service := health.get("service"), dict):
        shown["service"] = {name: value for name, value in service.items() if name not in ("topic_prefix", "schemas")}
    if isinstance(state := health.get("vector_index"), str):
        shown["vector_index"] = state.partition(":")[0]
    if isinstance(lag := health.get("lag"), dict):
        shown["lag"] = {topic.rpartition(".")[2]: behind for topic, behind in lag.items()}
    return shown


def _runs_for_callers(listed: Json) -> Json:
    """Cut the prefix of topics' names, as health does."""

    def shown(run: Json) -> Json:
        request = run.get("request")
        if not isinstance(request, dict):
            return run
        return {**run, "request": {**request, "topic": str(request.get("topic")).rpartition(".")[2]}}

    return {**listed, "runs": [shown(run) for run in listed["runs"]]}


FOR_CALLERS: Mapping[str, Callable[[Json], Json]] = {"health": _health_for_callers, "list_runs": _runs_for_callers}
"""Results that name things hidden from callers of the gateway."""
