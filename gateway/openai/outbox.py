"""Turns that wait until Kafka has them.

Enters: turns of already answered calls. Leaves: each to Kafka, those of one user in their order, retried until Kafka
has them, while the process lives. Guaranteed: they take bounded memory, of which no key has more than a quarter; turns
without room are dropped, logged and counted. A turn that Kafka gets twice has one id.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.http.limits import Shares
from gateway.service.calls import Call, Caller, Refused
from gateway.service.meters import Meters
from gateway.service.turns import Turn

log = logging.getLogger(__name__)

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Maximum bytes of waiting turns: about 60,000 of 500 characters."""

MAX_SHARE = 4
"""A key may use the total divided by this."""

BYTES_BESIDE_TEXT = 600
"""Memory of a waiting turn in addition to its text."""

ATTEMPT_S, RETRY_S = 10.0, 1.0
"""Timeout of one attempt, and the pause between two, in seconds."""

MAX_ATTEMPTS_UNDER_WAY = 32

DRAIN_S = 1.5
"""Seconds for waiting turns when the gateway ends."""

RETRIABLE = ("unavailable", "timeout", "internal", "too_many_requests")
"""Codes of transient failures."""

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
