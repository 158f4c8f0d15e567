"""The only way to the service: check access, send with the caller's principal, translate errors.

Enters: a call, and a record without `schema` and scope. Leaves: the reply. Guaranteed: nothing is sent for a caller
whose grants do not cover it; nothing waits beyond the call's deadline; only the service's own sentences are passed on.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from modestream_client.answers import Reply
from modestream_client.boundary import BoundaryFields
from modestream_client.failures import MemoryClientError, MemoryServiceError, MemoryTimeout
from modestream_client.operations import Operation
from modestream_client.records import Written
from modestream_client.transport import OnPartial

from gateway.service.access import require_operating, require_scope
from gateway.service.calls import RETRY_AFTER_S, Backend, Call, Json, Refused, failed, out_of_time, unavailable
from gateway.service.tracing import named_request
from schemas.state.policies import OPERATOR, Permission


def with_warnings(reply: Reply) -> Json:
    """Return the result with its `warnings`, which may be empty."""
    return {**reply.result, "warnings": warnings_of(reply)}


def result_of(reply: Reply) -> Json:
    """Return the result, with `warnings` if there are any."""
    return with_warnings(reply) if reply.warnings else reply.result


def warnings_of(reply: Reply) -> list[Json]:
    return [{"code": warning.code, "message": warning.message} for warning in reply.warnings]


log = logging.getLogger(__name__)

INTERNAL_CODES = frozenset({"internal", "reply_topic_refused", "unknown_schema", "unknown_command", "invalid_json"})
"""Codes of a service that does not understand this gateway, or failed: the caller can't do anything about them."""

MODEL_FIELD = "profile"
"""The field of errors of a language model."""

FIELD_PREFIXES = ("scope.", "arguments.")
"""Prefixes of the service's fields before the caller's name for them."""


class CheckedRequests:
    """Sends requests that the caller's grants cover."""

    def __init__(self, backend: Backend, boundary_fields: BoundaryFields, any_scope: Mapping[str, str]) -> None:
        """`any_scope` is the scope of commands that concern no user."""
        self._any_scope = any_scope
        self._backend = backend
        self._boundary_fields = boundary_fields

    def full_scope(self, call: Call, scope: Mapping[str, Any]) -> Json:
        """Return a scope with the call's user, whatever user it has. Raises Refused, `invalid_value`."""
        try:
            return {**scope, **self._boundary_fields.values(call.user_id)}
        except ValueError as problem:
            raise Refused("invalid_value", str(problem), "user_id") from None

    def record_of(self, operation: Operation[Any], call: Call, scope: Json, fields: Mapping[str, Any]) -> Json:
        """Return the record of an operation. Raises Refused, `invalid_value`."""
        return operation.record_of(self.full_scope(call, scope), fields)

    async def ask(
        self,
        operation: Operation[Any],
        call: Call,
        scope: Json,
        fields: Mapping[str, Any],
        on_partial: OnPartial | None = None,
    ) -> Reply:
        """Execute an operation; one of operators has no scope. Raises Refused."""
        if operation.permission == "operate":
            require_operating(call.caller)
            arguments = {name: value for name, value in fields.items() if value is not None}
            scope = self.full_scope(call, scope) if operation.concerns_user else dict(self._any_scope)
            if (user := arguments.get("compare_user")) is not None:
                # The worker that has the user's memories answers.
                scope |= self._boundary_fields.values(user)
            with _translated_errors(call, "operate"):
                reply, _ = await self._backend.request(
                    operation.topic,
                    operation.record_of(scope, arguments),
                    principal=call.caller.principal or OPERATOR,
                    timeout=call.remaining_s(),
                )
            return reply
        record = self.record_of(operation, call, scope, fields)
        reply, _ = await self.send(call, operation.topic, record, operation.permission, on_partial=on_partial)
        return reply

    async def send(
        self,
        call: Call,
        topic: str,
        record: Json,
        permission: Permission,
        *,
        deadline: bool = True,
        on_partial: OnPartial | None = None,
    ) -> tuple[Reply, Written]:
        """Send a record with its scope. Raises Refused; without `deadline` it also takes effect after a timeout."""
        require_scope(call.caller, call.user_id, record["scope"], permission)
        with _translated_errors(call, permission):
            return await self._backend.request(
                topic,
                record,
                principal=call.caller.principal,
                timeout=call.remaining_s(),
                deadline=deadline,
                on_partial=on_partial,
            )

    async def write(self, call: Call, topic: str, record: Json, permission: Permission) -> Written:
        """Send a record with its scope, and wait only until it is written. Raises Refused."""
        principal = call.caller.principal
        if permission == "operate":
            require_operating(call.caller)
            principal = principal or OPERATOR
        else:
            require_scope(call.caller, call.user_id, record["scope"], permission)
        with _translated_errors(call, permission):
            return await self._backend.write(topic, record, principal=principal, timeout=call.remaining_s())

    def key_of(self, user_id: str) -> str:
        """Return the key of the user's records. Raises Refused, `invalid_value`, for an invalid name."""
        try:
            return self._boundary_fields.key_of(user_id)
        except ValueError as problem:
            raise Refused("invalid_value", str(problem), "user_id") from None

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records. Raises Refused: `invalid_value`, `unavailable`."""
        self.key_of(user_id)
        try:
            return await self._backend.partition_of(user_id)
        except MemoryClientError as error:
            log.warning("no partitions: %s", error)
            raise unavailable() from None


@contextmanager
def _translated_errors(call: Call, permission: Permission) -> Iterator[None]:
    with named_request(call.request_id):
        try:
            yield
        except MemoryServiceError as error:
            raise refused_by_service(error.code, error.message, error.field) from None
        except MemoryTimeout as error:
            log.warning("%s", error)
            if not error.is_written:
                raise unavailable() from None
            raise out_of_time(writes=permission != "read") from None
        except MemoryClientError as error:
            log.warning("%s", error)
            raise unavailable() from None


def refused_by_service(code: str, message: str, field: str | None) -> Refused:
    """Return the refusal of an error of the service, in the caller's terms."""
    if code == "unavailable":
        log.warning("%s", message)
        if field == MODEL_FIELD:
            # Errors of a language model are passed on to the caller.
            return Refused("unavailable", message, field, retry_after_s=RETRY_AFTER_S)
        return unavailable()
    if code == "not_allowed":
        return Refused("not_allowed", "this key may not do this here; use a key whose grants allow it")
    if code in INTERNAL_CODES:
        log.error("%s: %s", code, message)
        return failed()
    prefix = next((prefix for prefix in FIELD_PREFIXES if field and field.startswith(prefix)), "")
    return Refused(code, message, field.removeprefix(prefix) if field else field)  # type: ignore[arg-type]
