"""One request channel with a configurable handler."""

import json
from collections.abc import Awaitable
from typing import Any

from agents.commands.admit import Admit
from schemas.messages.commands import Command
from schemas.messages.records import Headers, Outgoing, Record
from schemas.messages.replies import SuccessReply
from schemas.messages.turns import Turn
from streams.flow.requests.channel import Channel, Handler, HandlerResult, Replies, ReplyOptions
from streams.flow.requests.pipeline import Admission, RequestPipeline
from streams.flow.runs.recorder import RunOptions, RunRecorder
from streams.observability.metrics import Meters
from streams.topics import topics_with_prefix
from tests.builders.turns import PARTITIONS, record, turn_fields
from tests.fakes.clock import FakeClock
from tests.fakes.publisher import FakePublisher

TURNS = Channel("memory.turns", {"turn.v1": Turn}, "write", keeps_rejected=True, outlives_deadline=True)
COMMANDS = Channel("memory.commands", {"command.v1": Command}, "manage")
TOPICS = topics_with_prefix("memory.")
CONCURRENT = Channel("memory.commands", {"command.v1": Command}, "manage", concurrent=True)
COMMAND = {"schema": "command.v1", "command": "do", "scope": {"user_id": "u1"}}
OPEN = Admit()
EVENT = Outgoing("memory.remembered", b"u1", b"event")
CHANNELS = {"turns": TURNS, "commands": COMMANDS, "concurrent": CONCURRENT}


class RequestHarness:
    """A channel whose handler returns `result` or raises `problem`, or is `handle`."""

    def __init__(self, channel: Channel, admit: Admit = OPEN, runs: RunOptions | None = None) -> None:
        """Runs are recorded with the options `runs`, and without any not at all."""
        self.publisher = FakePublisher()
        self.clock = FakeClock()
        self.meters = Meters()
        self.channel = channel
        self.handled: list[tuple[Record, ReplyOptions]] = []
        self.handle: Handler | None = None
        self.result: HandlerResult = HandlerResult(SuccessReply({"done": True}))
        self.problem: Exception | None = None
        self.runs: list[Outgoing] = []
        admission = Admission(channel, admit, PARTITIONS, "memory.replies", self.clock)
        replies = Replies(self.publisher, "memory.dead-letters", self.clock, self.meters)
        recorder = None if runs is None else RunRecorder(self.runs.append, TOPICS, self.clock, runs)
        self._requests = RequestPipeline(admission, self._handle, replies, recorder)

    async def _handle(self, message: Any, received: Record, reply_options: ReplyOptions) -> HandlerResult:
        self.handled.append((received, reply_options))
        if self.handle is not None:
            return await self.handle(message, received, reply_options)
        if self.problem is not None:
            raise self.problem
        return self.result

    def valid(self, *headers: tuple[str, bytes], **changes: Any) -> Record:
        value = turn_fields() if self.channel is TURNS else COMMAND
        return record(value, topic=self.channel.topic, headers=(*REPLY, *headers), **changes)

    async def process(self, received: Record) -> None:
        await (await self.begin(received))

    async def begin(self, received: Record) -> Awaitable[object]:
        return await self._requests.begin(received)

    @property
    def recorded(self) -> list[dict[str, Any]]:
        return [json.loads(out.value or b"") for out in self.runs]

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [json.loads(reply.value or b"")["error"] for reply in self.publisher.replies]

    @property
    def dead_letters(self) -> list[Outgoing]:
        return self.publisher.to("memory.dead-letters")

    def counted(self, name: str, **labels: str) -> float:
        return self.meters.registry.get_sample_value(f"modestream_{name}_total", labels) or 0


REPLY: Headers = (("reply_to", b"memory.replies.app"), ("correlation_id", b"\x00\xff"), ("reply_partition", b"2"))
