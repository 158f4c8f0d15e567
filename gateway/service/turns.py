"""Store turns: one, or many in order. A turn is durable and can be found when its answer comes."""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from modestream_client.records import TURNS_TOPIC, Written, build_record

from gateway.service.answers import warnings_of
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.requests import CheckedRequests
from gateway.service.wire import Json

FORGOTTEN = "forgotten"
"""The warning of a turn that was forgotten: it is answered, and not stored again."""


class Turn(NamedTuple):
    """A turn without schema and scope, and its scope without the user."""

    scope: Json
    fields: Mapping[str, Any]


class Stored(NamedTuple):
    """The answer to writes. `is_new`: something was stored that was not there."""

    body: Json
    is_new: bool


class Turns:
    """Turns in; what a turn's reply has, and `read_after`, out."""

    def __init__(self, requests: CheckedRequests) -> None:
        self._requests = requests

    async def add(self, call: Call, turn: Turn) -> Stored:
        """Store one turn. Raises Refused."""
        answer, written = await self._add(call, turn)
        return Stored({**answer, "read_after": written.read_after}, _is_new(answer))

    async def add_all(self, call: Call, turns: Sequence[Turn | Refused]) -> Stored:
        """Store turns in order; a refused one has its `error` in its place and costs the others nothing.

        Raises Refused where all fail for the same reason that is none of theirs: no access, no service, no time.
        """
        ends = await asyncio.gather(*(self._add_or_refuse(call, turn) for turn in turns))
        failures = [end for end in ends if isinstance(end, Refused)]
        if len(failures) == len(ends) and failures[0].code in ("not_allowed", "unavailable", "timeout", "internal"):
            raise failures[0]
        written = [end[1] for end in ends if not isinstance(end, Refused)]
        results = [_error_of(end) if isinstance(end, Refused) else end[0] for end in ends]
        last = max(written, key=lambda one: one.offset).read_after if written else None
        return Stored({"results": results, "read_after": last}, any(map(_is_new, results)))

    async def _add_or_refuse(self, call: Call, turn: Turn | Refused) -> tuple[Json, Written] | Refused:
        if isinstance(turn, Refused):
            return turn
        try:
            return await self._add(call, turn)
        except Refused as refused:
            return refused

    async def _add(self, call: Call, turn: Turn) -> tuple[Json, Written]:
        scope = self._requests.full_scope(call, turn.scope)
        record = build_record("turn.v1", **{**turn.fields, "scope": scope})
        # No deadline: it would not prevent the turn from being stored, only its reply from being sent.
        reply, written = await self._requests.send(call, TURNS_TOPIC, record, "write", deadline=False)
        return {**reply.result, "warnings": warnings_of(reply)}, written


def idempotent_turn_id(key: str, turn: Json, place: int | None = None) -> str:
    """Return the turn id for an idempotency key: the same key with another turn, or in another place, is another one.

    >>> idempotent_turn_id("k", {"content": "a"}) == idempotent_turn_id("k", {"content": "b"})
    False
    """
    text = json.dumps([key, place, turn], sort_keys=True, ensure_ascii=False)
    return "idem-" + hashlib.sha256(text.encode()).hexdigest()


def with_time(fields: Mapping[str, Any]) -> Json:
    """Return the fields of a turn whose id is made of its content, with the present time where it has none.

    Its record can be replayed then. Another attempt has another time, and as a duplicate changes nothing.
    """
    return {**fields, "occurred_at": fields.get("occurred_at") or datetime.now(UTC)}


def _is_new(answer: Json) -> bool:
    forgotten = any(warning["code"] == FORGOTTEN for warning in answer.get("warnings", ()))
    return "error" not in answer and not answer.get("duplicate") and not forgotten


def _error_of(refused: Refused) -> Json:
    return {"error": {"code": refused.code, "message": refused.message, "field": refused.field}}
