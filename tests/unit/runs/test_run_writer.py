"""Run records are written beside the answers, and dropped where Kafka does not take them."""

import asyncio
from collections.abc import Awaitable

from agents.ports.clock import RunTimer, current_run
from schemas.messages.records import Outgoing
from streams.flow.runs.recorder import RunWriter
from streams.observability.metrics import Meters
from tests.fakes.publisher import FakePublisher

RUN = Outgoing("memory.runs", b"u1", b"{}")


class LookingPublisher(FakePublisher):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[RunTimer | None] = []

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Note the run, and record the message."""
        self.seen.append(current_run())
        return await super().send(out)


def dropped(meters: Meters) -> float:
    return meters.registry.get_sample_value("modestream_runs_dropped_total") or 0


async def test_an_outage_holds_a_bounded_number_of_records() -> None:
    publisher, meters = FakePublisher(), Meters()
    writer = RunWriter(publisher, meters, limit=3)
    publisher.hold()
    for _ in range(5):
        writer.write(RUN)
    await asyncio.sleep(0)
    assert len(publisher.sent) == 3
    assert dropped(meters) == 2
    publisher.release()
    await asyncio.sleep(0.01)
    writer.write(RUN)
    await asyncio.sleep(0)
    assert len(publisher.sent) == 4
    assert dropped(meters) == 2


async def test_a_refused_record_is_dropped() -> None:
    publisher, meters = FakePublisher(), Meters()
    publisher.broken = RuntimeError("refused")
    RunWriter(publisher, meters).write(RUN)
    async with asyncio.timeout(1):
        while dropped(meters) < 1:
            await asyncio.sleep(0)


async def test_a_record_does_not_keep_the_context_of_its_request() -> None:
    publisher = LookingPublisher()
    with RunTimer():
        RunWriter(publisher, Meters()).write(RUN)
    await asyncio.sleep(0)
    assert publisher.seen == [None]
