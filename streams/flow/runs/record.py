"""Run records: their parts (times, request, place in the pipelines, input and outcome in short), and the newest ones.

Guaranteed: no text of a memory; none of a question, unless it is asked for; bounded, whatever a request has.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

from modestream_client.contexts import AnswerResult, AssembleResult
from modestream_client.runs import Pipeline, Run, RunModelCall, RunPart, RunRequest, RunRevision, RunStep
from pydantic import ValidationError

from agents.ports.clock import RunTimer
from agents.ports.commands import RunPage
from agents.rules.context.section_candidates import CATEGORY_ID_PREFIX
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.messages.assemble import AnswerRequest, AssembleRequest
from schemas.messages.records import REQUEST_ID_HEADER, Record, is_request_id
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from schemas.messages.turns import Turn, TurnAccepted

MAX_KEY_BYTES = 1024
"""A longer key of a record that could not be read is no user's."""

PARTS: Mapping[type[Any], tuple[RunPart, str]] = {
    Turn: ("accept", "turn.v1"),
    RetrieveRequest: ("answer", "retrieve.v1"),
    # Before the contexts, of which it is one.
    AnswerRequest: ("answer", "answer.v1"),
    AssembleRequest: ("answer", "assemble.v1"),
    ConsolidationTrigger: ("consolidate", "consolidate.v1"),
}
"""The messages whose runs are recorded."""

UNREAD_PARTS: Mapping[Pipeline, RunPart] = {"memorize": "accept", "retrieve": "answer", "evolve": "consolidate"}

MAX_IDS = 10
"""Ids of one kind in an outcome; their number is there in any case."""

MAX_NAMES = 10
"""Modes in an input."""

MAX_ID_CHARS = 256
MAX_TEXT_CHARS = 2000
"""Characters of a text, where a deployment allows texts."""

Short = dict[str, Any]


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
        "steps": tuple(sorted(steps, key=lambda run_step: run_step.at_ms)),
        "models": tuple(
            RunModelCall(
                step=call.step,
                at_ms=_ms(call.began - timer.began),
                ms=_ms(call.ended - call.began),
                profile=call.profile,
                tokens_in=call.tokens_in,
                tokens_out=call.tokens_out,
                cost_usd=call.cost_usd,
                failure=call.failure,
            )
            for call in timer.models
        ),
        "omitted": timer.omitted,
    }


def revision_of(revision: tuple[int, str]) -> RunRevision:
    """Return a revision by its number and its hash."""
    return RunRevision(number=revision[0], hash=revision[1])


def has_failed_model(timer: RunTimer) -> bool:
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


def key_of_unreadable(record: Record, boundary: str) -> bytes | None:
    """Return the key of a refused record's run: the boundary that it names, else its own key."""
    named = boundary.encode() or record.key
    return named if named and len(named) <= MAX_KEY_BYTES else None


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


def short_input(message: Any, *, texts: bool) -> Short:
    """Return the request's fields that are set."""
    if isinstance(message, Turn):
        return _given(
            {
                "conversation_id": message.conversation_id[:MAX_ID_CHARS],
                "turn_id": message.turn_id,
                "role": message.role,
                "mode": _names(message.mode),
                "resources": len(message.resources) or None,
                # Never its text, which custom steps may change before it is stored: the memory has what is left of it.
                "content_chars": len(message.content),
            }
        )
    if isinstance(message, RetrieveRequest):
        return _given(
            {
                "mode": _names(message.mode),
                "conversation_id": message.conversation_id and message.conversation_id[:MAX_ID_CHARS],
                "top_k": message.top_k,
                "depth": message.depth,
                "rerank": message.rerank,
                "read_after": message.read_after,
            }
            | _text("query", message.query, texts=texts)
        )
    if isinstance(message, AssembleRequest):
        return _given(
            {
                "mode": _names(message.mode),
                "conversation_id": message.conversation_id and message.conversation_id[:MAX_ID_CHARS],
                "budget_tokens": message.budget_tokens,
                "format": message.format,
                "interaction_mode": message.interaction_mode,
                "pins": len(message.pins) or None,
                "read_after": message.read_after,
            }
            | _text("query", message.query, texts=texts)
        )
    if isinstance(message, ConsolidationTrigger):
        return _given({"mode": _names(message.mode)})
    return {}


def short_outcome(result: Any, *, texts: bool) -> Short:
    if isinstance(result, TurnAccepted):
        return result.model_dump(mode="json", exclude={"memory_id"})
    if isinstance(result, RetrieveResult):
        diagnostics = {name: result.diagnostics.get(name) for name in ("candidates", "method", "depth")}
        ids = _ids("hits", (hit.memory_id for hit in result.hits))
        return {**ids, "strategy": result.strategy, "modes": result.modes[:MAX_NAMES], **diagnostics}
    if isinstance(result, AssembleResult):
        return {
            **_ids("memories", (_reference(reference, texts=texts) for reference in result.references)),
            "tokens": result.tokens.get("total", 0),
            "sections": {name: len(ids) for name, ids in result.sections.items() if ids},
            "interaction_mode": result.interaction_mode,
            "taxonomy_version": result.diagnostics.taxonomy_version,
            "dropped": len(result.dropped),
            "sticky": len(result.sticky),
            "breaches": len(result.breaches),
        }
    if isinstance(result, AnswerResult):
        return {
            **_ids("memories", (_reference(reference, texts=texts) for reference in result.references)),
            "tokens": result.context["tokens"].get("total", 0),
            "finish_reason": result.finish_reason,
            **_text("text", result.text, texts=texts),
        }
    return _consolidation(result) if isinstance(result, Mapping) else {}


def short_scope(message: Any) -> Short:
    """Return the scope of a message, a selector with at most `MAX_NAMES` values of a field and `*` for any."""
    scope = message.scope
    fields = scope.fields() if hasattr(scope, "fields") else scope.model_dump()
    return {name: _selected(value) for name, value in fields.items()}


def _consolidation(body: Mapping[str, Any]) -> Short:
    counts: dict[str, int] = {}
    for mode in body.get("modes", {}).values():
        for name, number in mode.items():
            counts[name] = counts.get(name, 0) + number
    ids = {**_ids("created", body.get("created", ())), **_ids("superseded", body.get("superseded", ()))}
    refreshed = {"refreshed": body["refreshed"]} if "refreshed" in body else {}
    return {**counts, **refreshed, **ids, "modes": len(body.get("modes", {})), "changes": len(body.get("diff", ()))}


def _ids(name: str, memory_ids: Iterable[str]) -> Short:
    every = list(memory_ids)
    return {name: len(every), f"{name}_ids": every[:MAX_IDS]}


def _reference(memory_id: str, *, texts: bool) -> str:
    """Return an id; that of a category's summary has the category's name, which a user or a model has written."""
    return CATEGORY_ID_PREFIX.rstrip(":") if memory_id.startswith(CATEGORY_ID_PREFIX) and not texts else memory_id


def _text(name: str, text: str, *, texts: bool) -> Short:
    return {f"{name}_chars": len(text), name: text[:MAX_TEXT_CHARS] if texts else None}


def _names(names: str | list[str] | None) -> str | list[str] | None:
    if isinstance(names, list):
        return [name[:MAX_ID_CHARS] for name in names[:MAX_NAMES]]
    return None if names is None else names[:MAX_ID_CHARS]


def _selected(value: Any) -> Any:
    if value is None:
        return "*"
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else list(value[:MAX_NAMES])
    return value


def _given(fields: Short) -> Short:
    return {name: value for name, value in fields.items() if value is not None}


class RunsFound:
    """The runs of one boundary among the records of windows, which are read from the last to the first."""

    def __init__(self, key: bytes, admits: Callable[[Run], bool], limit: int, since_ms: int) -> None:
        self._key = key
        self._admits = admits
        self._limit = limit
        self._since_ms = since_ms
        self._earlier: list[Run] = []
        """Those of the window that is being read, oldest first."""
        self._later: dict[str, Run] = {}
        """Those of finished windows by id, newest first."""
        self._is_over = False
        self.is_complete = True
        """False once records were left unread."""

    @property
    def is_enough(self) -> bool:
        """True if no earlier window can have a run that is wanted."""
        return self._is_over or len(self._later) >= self._limit

    def take(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        if timestamp_ms < self._since_ms:
            self._is_over = True
        elif key == self._key and value is None:
            # The user was forgotten here.
            self._earlier, self._is_over = [], True
        elif key == self._key and value is not None and (run := _parsed(value)) is not None and self._admits(run):
            self._earlier.append(run)

    def finish_window(self) -> None:
        """Put the runs of a window behind those of later ones."""
        for run in reversed(self._earlier):
            self._later.setdefault(run.run_id, run)
        self._earlier = []

    def page(self) -> RunPage:
        """Return the newest runs; those of a window that was not read to its end are the newest there are."""
        self.finish_window()
        runs = list(self._later.values())
        return RunPage(runs[: self._limit], self.is_complete)


def _parsed(value: bytes) -> Run | None:
    try:
        return Run.model_validate_json(value)
    except ValidationError:
        return None  # Of a later version, or written by something else.
