"""The request pipeline: every record of an input topic is relocated, expired, refused, or handled and answered.

A record enters `begin` in the order of its partition. The returned awaitable is done when replies, events and writes
are stored; then the record may be acknowledged. An invalid record costs its sender an error and delays no other one.
"""

from collections.abc import Awaitable
from typing import Any

import structlog

from schemas.failures import Poison, Rejected, Unavailable
from schemas.messages.records import Record
from schemas.messages.replies import ReplyAddress
from streams.flow.publisher import await_all, no_writes
from streams.flow.requests.admission import Admission
from streams.flow.requests.channel import Handler, ReplyOptions, rejection_of
from streams.flow.requests.replies import Replies, log_context
from streams.flow.runs.recorder import NO_RUN, RunNotes, RunRecorder
from streams.wire.fillers import is_filler

log = structlog.get_logger()


class RequestPipeline:
    """Serves one input topic: admission, then the handler, then the reply."""

    def __init__(
        self, admission: Admission, handler: Handler, replies: Replies, runs: RunRecorder | None = None
    ) -> None:
        """Without `runs` no run is recorded."""
        self._runs = runs
        self._admission = admission
        self._channel = admission.channel
        self._handler = handler
        self._replies = replies
        self._meters = replies.meters

    async def begin(self, record: Record) -> Awaitable[object]:
        """Run the part of a record that depends on order; return an awaitable of the rest."""
        if is_filler(record):
            return no_writes()
        run = NO_RUN if self._runs is None else self._runs.begin(record)
        with run.timer:
            return await self._begin(record, run)

    async def _begin(self, record: Record, run: RunNotes) -> Awaitable[object]:
        address = None
        try:
            address = self._admission.reply_address(record)
            options = self._admission.reply_options(record, address)
            address = options.address
            if self._admission.is_expired(options):
                self._meters.expired(record.topic)
                if not self._channel.outlives_deadline:
                    run.failed("expired")
                    return no_writes()
                address, options = None, ReplyOptions()
            with run.receiving():
                message = await self._admission.message(record)
                if relocated := self._admission.relocated(record, message.scope.boundary.encode()):
                    self._meters.moved(record.topic)
                    return await self._replies.publisher.send(relocated)
                run.note_message(message)
                message = self._admission.authorised(message, record)
            if self._channel.is_concurrent(message):
                return self._run_to_end(message, record, options, run)
            return await self._handle(message, record, options, run)
        except Rejected as error:
            return await self._refuse(record, address, error, run)

    async def _run_to_end(self, message: Any, record: Record, options: ReplyOptions, run: RunNotes) -> None:
        with run.timer:
            try:
                finishing = await self._handle(message, record, options, run)
            except Rejected as error:
                finishing = await self._refuse(record, options.address, error, run)
        await finishing

    async def _handle(self, message: Any, record: Record, options: ReplyOptions, run: RunNotes) -> Awaitable[object]:
        """Run the handler; an answer that cannot be encoded is a defect of the handler."""
        try:
            result = await self._handler(message, record, options)
            reply = None if options.address is None or result.answer is None else result.answer.encode()
        except Rejected:
            raise
        except (Unavailable, MemoryError) as problem:
            # Memory is short because of everything that runs, so it says nothing about this record.
            if self._channel.outlives_deadline:
                # An accepted record must not be lost: the run ends, and it is delivered again after a restart.
                run.failed("unavailable")
                raise
            raise rejection_of(problem) from problem
        except Exception as problem:
            log.exception("handling failed", **log_context(record))
            raise rejection_of(problem) from problem
        self._meters.handled(record.topic)
        sent = [*result.pending_writes, *[await self._replies.publisher.send(event) for event in result.events]]
        replied = [] if reply is None else await self._replies.reply(record, options.address, reply)
        # What its events lead to has a run of its own.
        if result.answer is not None or not result.events:
            run.answered(result.answer)
        return await_all([*sent, *replied])

    async def _refuse(
        self, record: Record, address: ReplyAddress | None, error: Rejected, run: RunNotes
    ) -> Awaitable[object]:
        keeps_rejected = self._channel.keeps_rejected
        refused = await self._replies.refuse(record, address, error, keeps_rejected=keeps_rejected)
        run.refused(error, is_dead_letter=keeps_rejected or address is None or isinstance(error, Poison))
        return await_all(refused)
