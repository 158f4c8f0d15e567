"""The monitoring server listens where it is told to."""

from pathlib import Path

import aiohttp
import pytest

from streams.observability.http_server import MonitoringServer
from streams.observability.metrics import Meters


async def test_pages_are_served_at_the_chosen_address_alone(tmp_path: Path) -> None:
    status = {"lag": {"memory.turns": 7}, "copies": {"1": 5}, "awaited": {"0": 71, "3": 71}}
    server = MonitoringServer(Meters(), lambda: True, lambda: status)
    await server.start("127.0.0.2", 0, tmp_path / "run" / "metrics.port")
    port = (tmp_path / "run" / "metrics.port").read_text()
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.2:{port}/metrics") as page:
                text = await page.text()
                assert 'modestream_lag{topic="memory.turns"} 7.0' in text
                assert 'modestream_copy_lag{partition="1"} 5.0' in text
                assert "modestream_partitions_awaited 2.0" in text
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(f"http://127.0.0.1:{port}/live")
    finally:
        await server.stop()
