"""The record of what a context or an answer was based on, on the topic `contexts`: ids, and no text."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from agents.context.assemble import AssembledContext
from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.messages.assemble import AnswerRequest, AssembleRequest
from schemas.messages.contexts import LoggedContext, LoggedReference, query_digest, selection_of
from schemas.messages.records import Outgoing, Record

UUID_TIME_SHIFT = 80
"""Bits below the time of a UUIDv7, in milliseconds."""


def context_record(
    topic: str,
    in_force: Callable[[], tuple[int, str]],
    request: AssembleRequest,
    record: Record,
    context: AssembledContext,
) -> Outgoing:
    """Return the record; `in_force` returns the revision of the pipelines, `record` is that of the request."""
    assert context.context_id is not None
    principal = record.header(PRINCIPAL_HEADER)
    logged = LoggedContext(
        context_id=context.context_id,
        scope=selection_of(request.scope.fields()),
        at=datetime.fromtimestamp((UUID(context.context_id).int >> UUID_TIME_SHIFT) / 1000, UTC),
        kind="answer" if isinstance(request, AnswerRequest) else "assemble",
        mode=context.modes[0] if len(context.modes) == 1 else list(context.modes),
        interaction_mode=context.interaction_mode,
        revision=in_force()[0],
        principal=None if principal is None else principal.decode("utf-8", "replace"),
        query_sha256=query_digest(request.query),
        references=tuple(LoggedReference(**shown._asdict()) for shown in context.shown),
        dropped=tuple(context.dropped),
        tokens={str(name): count for name, count in context.tokens.items()},
    )
    value = logged.model_dump_json(by_alias=True).encode()
    return Outgoing(topic, request.scope.boundary.encode(), value, partition=record.partition)
