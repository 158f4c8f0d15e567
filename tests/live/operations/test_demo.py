"""The demo, twice on a running worker, and where the service answers with errors."""

import secrets

from streams.demo.script import run_demo
from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import Deployment
from tests.worlds.live.stand_in import error, standing_in


async def test_demo_publishes_waits_asks_and_knows_its_turns_again(deployment: Deployment) -> None:
    await deployment.ready()
    first: list[str] = []
    assert await run_demo(deployment.bootstrap, first.append, deployment.prefix) == 0
    again: list[str] = []
    assert await run_demo(deployment.bootstrap, again.append, deployment.prefix) == 0
    assert any("41 new, 0 known" in line for line in first)
    assert "Turn diary-04 belongs to journal: it was general (fallback), is now journal." in first
    assert "All are embedded." in first
    assert sum(line.startswith("Question") for line in first) == 7
    assert any(", characters 0 to " in line for line in first)
    assert any(line.startswith("interaction mode ") for line in first)
    assert any("0 new, 41 known" in line for line in again)
    assert "Turn diary-04 belongs to journal: it is there already." in again


async def test_demo_reports_why_it_stops(live_broker: RunningBroker) -> None:
    lines: list[str] = []
    async with standing_in(live_broker.bootstrap, prefix := f"test-{secrets.token_hex(4)}.") as service:
        service.behaviour = lambda _: [error("unavailable", "the disk is full")]
        assert await run_demo(live_broker.bootstrap, lines.append, prefix) == 1
    assert lines[-1] == "The demo can't go on: unavailable: the disk is full"
