"""Parts of a run's record: its times, its request, its place in the pipelines."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

from modestream_client.runs import Pipeline, RunModelCall, RunPart, RunRequest, RunRevision, RunStep

from agents.ports.run_timer import ModelCall, RunTimer
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.messages.assemble import AssembleRequest
from schemas.messages.records import REQUEST_ID_HEADER, Record, is_request_id
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import Turn

MAX_KEY_BYTES = 1024
"""A longer key of a record that could not be read is no user's."""

PARTS: Mapping[type[Any], tuple[RunPart, str]] = {
    Turn: ("accept", "turn.v1"),
    RetrieveRequest: ("answer", "retrieve.v1"),
    AssembleRequest: ("answer", "assemble.v1"),
    ConsolidationTrigger: ("consolidate", "consolidate.v1"),
}
"""The messages whose runs are recorded."""

UNREAD_PARTS: Mapping[Pipeline, RunPart] = {"memorize": "accept", "retrieve": "answer", "evolve": "consolidate"}


def part_and_kind(pipeline: Pipeline, message: Any) -> tuple[RunPart | None, str | None]:
    """Return the part of a message and its schema; of none that was read the pipeline's part, (None, None) of others.

    A list has no run.
    """
    if message is None:
        return UNREAD_PARTS[pipeline], None
    # Messages are bound to the deployment's scope by subclasses.
    return next((known for kind, known in PARTS.items() if isinstance(message, kind)), (None, None))


def times_of(timer: RunTimer, now: datetime) -> dict[str, Any]:
    """Return the fields of a run that ends now."""
    took_s = perf_counter() - timer.began
    steps = [
        RunStep(step=name, at_ms=_ms(began - timer.began), ms=_ms(ended - began)) for name, began, ended in timer.steps
    ]
    return {
        "at": now - timedelta(seconds=took_s),
        "ms": _ms(took_s),
        "steps": tuple(sorted(steps, key=lambda one: one.at_ms)),
        "models": _model_calls(timer.models, timer.began),
        "omitted": timer.omitted,
    }


def revision_of(revision: tuple[int, str]) -> RunRevision:
    """Return a revision by its number and its hash."""
    return RunRevision(number=revision[0], hash=revision[1])


def has_failed_model(timer: RunTimer) -> bool:
    """True if a language model did not answer."""
    return any(call.failure for call in timer.models)


def request_of(record: Record) -> RunRequest:
    """Return the place of a record, its size, and its request id."""
    given = (record.header(REQUEST_ID_HEADER) or b"").decode(errors="replace")
    return RunRequest(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        bytes=len(record.value or b""),
        request_id=given if is_request_id(given) else None,
    )


def key_of_unread(record: Record, boundary: str) -> bytes | None:
    """Return the key of a refused record's run: the boundary that it names, else its own key."""
    named = boundary.encode() or record.key
    return named if named and len(named) <= MAX_KEY_BYTES else None


def _model_calls(calls: Sequence[ModelCall], began: float) -> tuple[RunModelCall, ...]:
    return tuple(
        RunModelCall(
            step=call.step,
            at_ms=_ms(call.began - began),
            ms=_ms(call.ended - call.began),
            profile=call.profile,
            tokens_in=call.tokens_in,
            tokens_out=call.tokens_out,
            cost_usd=call.cost_usd,
            failure=call.failure,
        )
        for call in calls
    )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
