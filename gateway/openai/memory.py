"""Memory for one completion: memories before the call, turns after it.

Guaranteed: no call fails because of memory, nor waits for it longer than the caller said.

Turns wait in an outbox until Kafka has them: those of a user in their order, retried while the process lives. Its
memory is bounded, and no key has more than a quarter of it; turns without room are dropped, logged and counted. A turn
that Kafka gets twice has one id.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from modestream_client.operations import ASSEMBLE_CONTEXT
from modestream_client.vocabulary import MAX_ID_LENGTH
from starlette.datastructures import Headers

from gateway.http.limits import Shares
from gateway.openai.chat import Question
from gateway.service.access import PROJECT
from gateway.service.calls import Call, Caller, Refused
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from gateway.service.turns import Turn
from schemas.messages.assemble import MIN_BUDGET_TOKENS
from schemas.messages.retrieval import MAX_QUERY_LENGTH
from schemas.messages.turns import pieces_of
from schemas.scopes import check_scope_value

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Maximum bytes of waiting turns: about 60,000 of 500 characters."""

MAX_SHARE = 4
"""A key may use the total divided by this."""

BYTES_BESIDE_TEXT = 600
"""Memory of a waiting turn in addition to its text."""

ATTEMPT_S, RETRY_S = 10.0, 1.0
"""Timeout of one attempt, and pause between attempts, in seconds."""

MAX_ATTEMPTS_UNDER_WAY = 32

DRAIN_S = 1.5
"""Seconds for waiting turns when the gateway ends."""

RETRIABLE = ("unavailable", "timeout", "internal", "too_many_requests")

Publish = Callable[[Call, Turn], Awaitable[object]]
"""Writes a turn to Kafka. Raises Refused."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A waiting turn, its caller and user, and its size."""

    caller: Caller
    user_id: str
    request_id: str
    turn: Turn
    size: int


class Outbox:
    """Waiting turns of all deployments that this process has served."""

    def __init__(self, meters: Meters, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._meters = meters
        self._room = Shares(max_bytes)
        self._by_user: dict[str, deque[Waiting]] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._publish: Publish | None = None
        self._attempts = asyncio.Semaphore(MAX_ATTEMPTS_UNDER_WAY)

    def keep(self, caller: Caller, user_id: str, request_id: str, turns: Iterable[Turn]) -> None:
        """Queue turns, and start sending them."""
        for turn in turns:
            size = len(turn.fields["content"].encode()) + BYTES_BESIDE_TEXT
            # Without keys all callers count as one.
            most = self._room.total if caller.principal is None else self._room.total // MAX_SHARE
            if self._room.take(caller.name, size, most) is not None:
                self._meters.openai_turns.labels("dropped").inc()
                log.error("request %s: a turn is dropped, as too many wait for Kafka", request_id)
                continue
            self._by_user.setdefault(user_id, deque()).append(Waiting(caller, user_id, request_id, turn, size))
            self._meters.openai_waiting.inc()
        self._begin(user_id)

    @asynccontextmanager
    async def sending(self, publish: Publish) -> AsyncIterator[None]:
        """Send waiting turns while the block runs, and at its end for at most `DRAIN_S` more; others wait on."""
        self._publish = publish
        for user_id in tuple(self._by_user):
            self._begin(user_id)
        try:
            yield
        finally:
            if self._sending:
                await asyncio.wait(self._sending.values(), timeout=DRAIN_S)
            self._publish = None
            ending = list(self._sending.values())
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            if waiting := sum(map(len, self._by_user.values())):
                log.warning("%d turns wait for Kafka", waiting)

    def _begin(self, user_id: str) -> None:
        if self._publish is not None and user_id in self._by_user and user_id not in self._sending:
            self._sending[user_id] = asyncio.create_task(self._send_all(user_id, self._publish))

    async def _send_all(self, user_id: str, publish: Publish) -> None:
        """Send a user's turns, one after another."""
        waiting = self._by_user[user_id]
        try:
            while waiting:
                if not await self._is_done(waiting[0], publish):
                    await asyncio.sleep(RETRY_S)
                    continue
                done = waiting.popleft()
                self._room.give_back(done.caller.name, done.size)
                self._meters.openai_waiting.dec()
            del self._by_user[user_id]
        finally:
            del self._sending[user_id]

    async def _is_done(self, waiting: Waiting, publish: Publish) -> bool:
        """Send a turn; return False if it has to be retried."""
        async with self._attempts:
            call = Call.within(waiting.caller, waiting.user_id, ATTEMPT_S, waiting.request_id)
            try:
                await publish(call, waiting.turn)
            except Refused as refused:
                if refused.code in RETRIABLE:
                    return False
                log.warning("request %s: a turn is not stored: %s", waiting.request_id, refused)
            except Exception:
                log.exception("request %s: a turn is not stored", waiting.request_id)
            else:
                self._meters.openai_turns.labels("stored").inc()
                return True
            self._meters.openai_turns.labels("refused").inc()
            return True


log = logging.getLogger(__name__)

DEFAULT_BUDGET_TOKENS, DEFAULT_WAIT_S = 2000, 1.0
"""Token budget and time limit of memories (docs/contract.md)."""

MAX_WAIT_S = 60.0

STORES: Mapping[str, bool] = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

PREFIX = "x-modestream-"
"""Prefix of the header fields for memory; none of them reaches the provider."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The header fields for memory; `nonsense` names an unreadable one: then nothing is recalled.

    Without `may_store` no turn is stored: the caller declines it, or the target is unclear.
    """

    user: str | None = None
    conversation: str | None = None
    project: str | None = None
    mode: str | None = None
    budget_tokens: int = DEFAULT_BUDGET_TOKENS
    wait_s: float = DEFAULT_WAIT_S
    may_store: bool = True
    nonsense: str | None = None

    @classmethod
    def of(cls, headers: Headers) -> "Wishes":
        texts = {name: _text(headers.get(PREFIX + name, "")) for name in READ_AS}
        values: dict[str, Any] = {}
        nonsense = []
        for name, (field, read) in READ_AS.items():
            if texts[name]:
                try:
                    values[field] = read(texts[name])
                except ValueError:
                    nonsense.append(name)
        if {"conversation", "project"} & set(nonsense):
            values["may_store"] = False
        return cls(**values, nonsense=nonsense[0] if nonsense else None)


def _text(header: str) -> str:
    """Return the text of a header's value: UTF-8 if it is valid."""
    try:
        return header.encode("latin-1").decode().strip()
    except UnicodeError:
        return header.strip()


def _conversation(text: str) -> str:
    if len(text) > MAX_ID_LENGTH:
        raise ValueError("too long")
    return text


def _budget(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) < MIN_BUDGET_TOKENS:
        raise ValueError("no budget")
    return int(text)


def _wait(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError("no time")
    return min(seconds, MAX_WAIT_S)


def _store(text: str) -> bool:
    if (stores := STORES.get(text.lower())) is None:
        raise ValueError("neither true nor false")
    return stores


READ_AS: Mapping[str, tuple[str, Any]] = {
    "user": ("user", str),
    "conversation": ("conversation", _conversation),
    "project": ("project", check_scope_value),
    "mode": ("mode", str),
    "budget": ("budget_tokens", _budget),
    "wait": ("wait_s", _wait),
    "store": ("may_store", _store),
}
"""By the rest of a header's name: the field of `Wishes`, and its parser."""


class Recalled(NamedTuple):
    """Result of the recall: `messages` to add, if any. `is_available` is false if memory is away, late, or refuses."""

    messages: Sequence[Mapping[str, Any]] = ()
    context_id: str | None = None
    is_available: bool = True


@dataclass(frozen=True, slots=True)
class Exchange:
    """One completion: its caller and user, their wishes, the question and its conversation, and the time."""

    caller: Caller
    user_id: str
    request_id: str
    wishes: Wishes
    conversation_id: str
    question: Question
    began: datetime

    @property
    def scope(self) -> dict[str, Any]:
        """The scope without the user."""
        return {} if self.wishes.project is None else {PROJECT: self.wishes.project}


class ChatMemory:
    """Recalls before a completion, and stores after it."""

    def __init__(self, service: MemoryService, outbox: Outbox, meters: Meters) -> None:
        self._service = service
        self._outbox = outbox
        self._meters = meters

    async def recall(self, exchange: Exchange, shown: Sequence[str]) -> Recalled:
        """Return memories about the question, except texts that are `shown` anyway. Never raises."""
        recalled = Recalled(is_available=False)
        try:
            async with asyncio.timeout(exchange.wishes.wait_s):
                recalled = await self._assembled(exchange, shown)
        except (Refused, TimeoutError) as problem:
            log.info("request %s goes on without memories: %s", exchange.request_id, problem or "late")
        except Exception:
            log.exception("request %s goes on without memories", exchange.request_id)
        self._meters.openai_memory.labels("used" if recalled.is_available else "unavailable").inc()
        return recalled

    async def _assembled(self, exchange: Exchange, shown: Sequence[str]) -> Recalled:
        wishes = exchange.wishes
        if wishes.nonsense is not None:
            raise Refused("invalid_value", "this header field has an invalid value", f"{PREFIX}{wishes.nonsense}")
        if not exchange.question.text:
            return Recalled()
        call = Call.within(exchange.caller, exchange.user_id, wishes.wait_s, exchange.request_id)
        fields = {
            # The end of a long message states the question more often than its beginning.
            "query": exchange.question.text[-MAX_QUERY_LENGTH:],
            "conversation_id": exchange.conversation_id,
            "mode": wishes.mode,
            "budget_tokens": wishes.budget_tokens,
            "for_model": True,
            "already_shown": list(shown),
        }
        result = await self._service.operations.run(ASSEMBLE_CONTEXT, call, exchange.scope, fields)
        context_id = result.get("context_id")
        return Recalled(
            messages=[dict(message) for message in result["messages"][-2:]] if result["references"] else (),
            # It becomes a header field.
            context_id=context_id if isinstance(context_id, str) and context_id.isascii() else None,
        )

    def store_question(self, exchange: Exchange) -> None:
        """Make the last user message a turn."""
        speaker = exchange.question.speaker
        more = {} if speaker is None else {"speaker": speaker[:MAX_ID_LENGTH]}
        self._store(exchange, "user", exchange.question.text, {**more, "occurred_at": exchange.began})

    def store_answer(self, exchange: Exchange, text: str) -> None:
        self._store(exchange, "assistant", text, {"occurred_at": datetime.now(UTC)})

    def _store(self, exchange: Exchange, role: str, text: str, more: Mapping[str, Any]) -> None:
        if not exchange.wishes.may_store:
            return
        turns = [
            Turn(
                exchange.scope,
                {
                    "turn_id": exchange.question.turn_id(exchange.conversation_id, role, number),
                    "conversation_id": exchange.conversation_id,
                    "role": role,
                    "content": piece,
                    "mode": exchange.wishes.mode,
                    **more,
                },
            )
            for number, piece in enumerate(pieces_of(text))
        ]
        self._outbox.keep(exchange.caller, exchange.user_id, exchange.request_id, turns)
