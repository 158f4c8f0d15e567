"""Several workers under one supervisor: their names, ids and settings, their page, their end."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from streams.bootstrap.data_directory import load_worker_id, worker_ids
from streams.up.child import read_pid
from streams.up.fleet import Fleet, FleetOptions
from streams.up.layout import Layout
from streams.up.ownership import child_names
from streams.up.supervised import fetch
from streams.up.workers import worker_processes

WORKER = """
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote
from streams.up.replacement import wait_for_begin
wait_for_begin()
data, own = Path(os.environ["MODESTREAM_DATA_DIR"]), os.environ.get("MODESTREAM_WORKER_ID")
run = data / "run" / f"worker-{quote(own, safe='')}" if own else data / "run"
health = {"partitions": [2 if own else 1], "recovering": False}
pages = {"/health": json.dumps(health), "/metrics": "# TYPE a gauge\\na 1.0\\n"}
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(pages.get(self.path, "").encode())
    def log_message(self, *_):
        pass
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = HTTPServer(("127.0.0.1", 0), Page)
run.mkdir(parents=True, exist_ok=True)
(run / "metrics.port").write_text(str(server.server_port))
server.serve_forever()
"""
"""A worker of one partition."""


@pytest.fixture
async def fleet(layout: Layout) -> AsyncIterator[Fleet]:
    options = FleetOptions((None, "other"), command=(sys.executable, "-c", WORKER))
    fleet = Fleet(options, layout, {}, lambda _: None)
    running = asyncio.create_task(fleet.run())
    async with asyncio.timeout(30):
        await fleet.announce()
    yield fleet
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await fleet.stop()


def test_ids_stay_when_the_number_of_workers_changes(tmp_path: Path) -> None:
    first = load_worker_id(tmp_path / "worker.id")
    assert worker_ids(tmp_path, None, 1) == (None,)
    assert worker_ids(tmp_path, None, 2) == (None, f"{first}-2")
    assert worker_ids(tmp_path, None, 3) == (None, f"{first}-2", f"{first}-3")
    assert worker_ids(tmp_path, "given", 2) == ("given", "given-2")


def test_worker_alone_keeps_its_settings_and_several_share_models(layout: Layout) -> None:
    [alone] = worker_processes(layout, (None,))
    assert alone.name == "worker"
    assert alone.environment == {}
    first, second = worker_processes(layout, (None, "other"))
    assert first.name == "worker"
    assert second.name == "worker-2"
    assert first.port_file == alone.port_file != second.port_file
    assert first.environment["MODESTREAM_SHARED_EMBEDDERS"] == "true"
    assert "MODESTREAM_WORKER_ID" not in first.environment
    assert second.environment["MODESTREAM_WORKER_ID"] == "other"


async def test_workers_are_on_one_page_and_end_together(layout: Layout, fleet: Fleet) -> None:
    assert child_names(layout) == ["gateway", "worker", "worker-2", "broker"]
    metrics, health = await fetch(layout.workers_port, "/metrics"), await fetch(layout.workers_port, "/health")
    assert metrics is not None
    assert health is not None
    assert {'a{worker="1"} 1.0', 'a{worker="2"} 1.0'} <= set(metrics[1].decode().splitlines())
    assert {name: page["partitions"] for name, page in json.loads(health[1])["workers"].items()} == {"1": [1], "2": [2]}
    await fleet.stop()
    assert not await fleet.is_ready()


async def test_rolling_restart_replaces_all_workers(layout: Layout, fleet: Fleet) -> None:
    before = {read_pid(layout.pid_file(name)) for name in ("worker", "worker-2")}
    fleet.restart_in_turn()
    async with asyncio.timeout(60):
        while not (state := layout.rolling_restart).exists() or json.loads(state.read_text())["state"] == "running":
            await asyncio.sleep(0.05)
    assert json.loads(state.read_text())["state"] == "done"
    after = {read_pid(layout.pid_file(name)) for name in ("worker", "worker-2")}
    assert len(after) == 2
    assert not before & after
    assert await fleet.is_ready()
