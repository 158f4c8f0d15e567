"""Stops a worker from writing when the group may have given its partitions to another one.

A process that was paused (SIGSTOP, a suspended machine, a frozen container) resumes where it was: its writes would
follow the records of the next owner, and forgotten memories would come back. Guaranteed: no produce request is sent
later than `MAX_SILENCE_S` after the last heartbeat that the broker has confirmed; a worker unknown to the broker ends.
While the broker is away requests wait, and continue when it is back and still knows the worker.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.protocol.group import JoinGroupRequest
from aiokafka.protocol.produce import ProduceRequest

DEFECT_CODE = 70
"""Exit code of a defect, `EX_SOFTWARE`: the supervisor restarts the worker."""


def end_process() -> None:
    """Exit at once, without a cleanup; unacknowledged events are delivered again. The caller has logged the reason."""
    log.error("ended", part="worker", code=DEFECT_CODE, reason="see the lines before")
    os._exit(DEFECT_CODE)


def end_refused() -> None:
    """Exit at once with the code of refused settings: the supervisor does not restart the worker.

    The caller has logged the reason.
    """
    log.error("ended", part="worker", code=os.EX_CONFIG, reason="see the lines before")
    os._exit(os.EX_CONFIG)


async def until_cancelled(run: Coroutine[Any, Any, None]) -> None:
    """Run a background task. If it ends by itself, that is a defect: end the process, to be restarted."""
    try:
        await run
    except asyncio.CancelledError:
        raise
    except BaseException:
        log.exception("background task failed")
    end_process()


SESSION_TIMEOUT_S = 12
"""How long after its last heartbeat the broker gives a worker's partitions to others."""

MAX_SILENCE_S = 10.0
"""Silence after which nothing is written: less than the session, as clocks of two machines may differ in speed."""

POLL_INTERVAL_S = 0.1
"""Between two checks of a request that waits."""

log = structlog.get_logger()


def running_time() -> float:
    """Return seconds since the start of the machine, including those in which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class GroupFence:
    """The last join or confirmed heartbeat of this worker. Open until there is one."""

    def __init__(self, now: Callable[[], float] = running_time, on_expelled: Callable[[], None] = end_process) -> None:
        """`on_expelled` is called when the group has gone on without this worker."""
        self._now = now
        self._on_expelled = on_expelled
        self._heard_at: float | None = None

    @property
    def is_closed(self) -> bool:
        """True if the group may have gone on without this worker."""
        return self._heard_at is not None and self._now() - self._heard_at > MAX_SILENCE_S

    async def wait_until_open(self) -> None:
        """Wait until a heartbeat is confirmed."""
        while self.is_closed:  # noqa: ASYNC110 - heartbeats are in another thread
            await asyncio.sleep(POLL_INTERVAL_S)

    def watch(self, consumer: AIOKafkaConsumer) -> None:
        """Take notice of the joins and heartbeats of a started consumer."""
        coordinator: Any = consumer._coordinator  # noqa: SLF001 - aiokafka has no callback for it
        send_heartbeat = coordinator._do_heartbeat  # noqa: SLF001
        complete_join = coordinator._on_join_complete  # noqa: SLF001

        async def note_and_complete(*assignment: Any) -> None:
            self._heard_at = self._now()
            await complete_join(*assignment)

        async def send_and_note() -> bool:
            # The time of the request: a response may be read long after it came.
            asked_at = self._now()
            is_known: bool = await send_heartbeat()
            if is_known:
                self._heard_at = asked_at
            elif self.is_closed and coordinator.member_id == JoinGroupRequest.UNKNOWN_MEMBER_ID:
                log.error("the group has gone on without this worker, ending the process")
                self._on_expelled()
            return is_known

        coordinator._do_heartbeat = send_and_note  # noqa: SLF001
        coordinator._on_join_complete = note_and_complete  # noqa: SLF001

    def guard(self, producer: AIOKafkaProducer) -> AIOKafkaProducer:
        """Let the produce requests of a producer wait while the fence is closed; return it."""
        client: Any = producer.client
        send = client.send

        async def send_when_open(node: Any, request: Any, **how: Any) -> Any:
            if isinstance(request, ProduceRequest):
                await self.wait_until_open()
            return await send(node, request, **how)

        client.send = send_when_open
        return producer
