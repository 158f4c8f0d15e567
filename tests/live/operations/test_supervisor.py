"""`up` on a real broker: it restarts dead children, stops cleanly and removes leftovers of a kill."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.up.layout import free_port
from tests.worlds.live.supervised import Up, eventually, is_alive, supervised


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "with a space"
    directory.mkdir()
    return directory


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A system that is up, for tests that leave it so."""
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("TOY_MODEL_KEY", "secret")
        with supervised(tmp_path_factory.mktemp("running"), free_port()) as up:
            assert up.process.stdout
            up.process.stdout.readline()
            yield up


async def topics(bootstrap: str) -> list[str]:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        return list(await client.list_topics())
    finally:
        await client.close()


async def create_topic(bootstrap: str, name: str) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        await client.create_topics([NewTopic(name, 1, 1)])
    finally:
        await client.close()


async def refused(directory: Path) -> str:
    """Return the error of a start that must fail. No cleanup: the pid files belong to another supervisor."""
    with (up := Up(directory, free_port())).process:
        assert await up.code() == os.EX_UNAVAILABLE
        assert await up.line() == ""
    return up.errors.read_text()


def accepts(bootstrap: str) -> bool:
    host, _, port = bootstrap.rpartition(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def test_the_worker_alone_has_the_keys_of_models(running: Up) -> None:
    has_key = {
        name: b"TOY_MODEL_KEY" in Path(f"/proc/{running.pid_of(name)}/environ").read_bytes()
        for name in ("broker", "gateway", "worker")
    }
    assert has_key == {"broker": False, "gateway": False, "worker": True}


# SIGINT is that of Ctrl-C: below.
@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGHUP])
async def test_signal_ends_the_worker_first_and_leaves_nothing(directory: Path, order: signal.Signals) -> None:
    with supervised(directory, port := free_port()) as up:
        assert (await up.line()).startswith(f"ready bootstrap=127.0.0.1:{port} http=http://127.0.0.1:")
        pids = [up.pid_of("worker"), up.pid_of("broker"), up.pid_of("gateway")]
        assert json.loads((directory / "given").read_text()) == {"pid": pids[0], "broker": f"kafka://127.0.0.1:{port}"}
        assert all(map(is_alive, pids))
        assert await up.end(order) == 0
        assert not any(map(is_alive, pids))
        assert await up.line() == ""
        assert json.loads((directory / "ended").read_text()) == {"signal": signal.SIGTERM, "broker_there": True}
        assert list((directory / "run").glob("*.pid*")) == []


async def test_repeated_ctrl_c_still_ends_cleanly(directory: Path) -> None:
    with supervised(directory, free_port()) as up:
        await up.line()
        pids = [up.pid_of("worker"), up.pid_of("broker")]
        (directory / "linger").touch()
        os.killpg(up.process.pid, signal.SIGINT)
        await eventually((directory / "ended").exists)
        os.killpg(up.process.pid, signal.SIGINT)
        (directory / "linger").unlink()
        assert await up.code() == 0
        assert json.loads((directory / "ended").read_text()) == {"signal": signal.SIGTERM, "broker_there": True}
        assert not any(map(is_alive, pids))
        assert list((directory / "run").glob("*.pid*")) == []


async def test_killed_worker_is_restarted_without_the_broker(running: Up) -> None:
    worker, broker = running.pid_of("worker"), running.pid_of("broker")
    os.kill(worker, signal.SIGKILL)
    await eventually(lambda: running.pid_of("worker") not in (0, worker))
    assert is_alive(running.pid_of("worker"))
    assert running.pid_of("broker") == broker
    assert is_alive(broker)


async def test_killed_broker_restarts_on_its_port_while_the_worker_stays(running: Up) -> None:
    await create_topic(running.bootstrap, "kept")
    worker, broker = running.pid_of("worker"), running.pid_of("broker")
    os.kill(broker, signal.SIGKILL)
    await eventually(lambda: running.pid_of("broker") not in (0, broker))
    await eventually(lambda: accepts(running.bootstrap))
    assert "kept" in await topics(running.bootstrap)
    assert running.pid_of("worker") == worker
    assert is_alive(worker)


async def test_stuck_worker_is_replaced(running: Up) -> None:
    worker, stuck = running.pid_of("worker"), running.directory / "stuck"
    stuck.touch()
    await eventually(lambda: not is_alive(worker))
    stuck.unlink()
    await eventually(lambda: running.pid_of("worker") not in (0, worker))
    assert "killing the worker: it is stuck" in running.errors.read_text()


async def test_second_supervisor_on_a_directory_is_rejected(running: Up) -> None:
    pids, said = [running.pid_of("worker"), running.pid_of("broker")], running.errors.read_text()
    assert f"in use by another `up`, process {running.process.pid}" in await refused(running.directory)
    assert [running.pid_of("worker"), running.pid_of("broker")] == pids
    assert all(map(is_alive, pids))
    assert running.errors.read_text() == said


async def test_port_that_another_program_has_is_rejected(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, supervised(directory, other.getsockname()[1]) as up:
        assert await up.code() == os.EX_UNAVAILABLE
        assert await up.line() == ""
        assert f"port {other.getsockname()[1]} is taken" in up.errors.read_text()


async def test_next_supervisor_cleans_up_after_a_killed_one(directory: Path) -> None:
    with supervised(directory, port := free_port()) as first:
        await first.line()
        await create_topic(first.bootstrap, "kept")
        orphans = [first.pid_of("worker"), first.pid_of("broker")]
        await first.end(signal.SIGKILL)
        assert all(map(is_alive, orphans))
        with supervised(directory, port) as second:
            assert (await second.line()).startswith(f"ready bootstrap=127.0.0.1:{port} http=http://127.0.0.1:")
            assert not any(map(is_alive, orphans))
            assert is_alive(second.pid_of("worker"))
            assert is_alive(second.pid_of("broker"))
            assert "kept" in await topics(second.bootstrap)
            assert await second.end() == 0


async def test_worker_that_never_starts_ends_the_start_with_its_reason(directory: Path) -> None:
    (directory / "refuse").touch()
    with supervised(directory, free_port()) as up:
        assert await up.code() == os.EX_UNAVAILABLE
        assert await up.line() == ""
        errors = up.errors.read_text()
        assert "a setting is wrong" in errors
        assert "the worker does not start" in errors
        assert list((directory / "run").glob("*.pid*")) == []
