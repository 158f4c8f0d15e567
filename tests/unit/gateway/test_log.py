"""The gateway's log: JSON in every line, from the start to the end, the server's own lines included."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.keys.key_file import Key, KeyFile
from streams.up.layout import free_port

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The log of a gateway with a key and without a policy or a broker, ended by SIGTERM once it serves."""
    KeyFile(keys=(Key(id="k1", sha256="0" * 64, principal="app"),)).write(
        keys := tmp_path_factory.mktemp("keys") / "keys.json"
    )
    environment = os.environ | {
        "MODESTREAM_BROKER": f"kafka://127.0.0.1:{free_port()}",
        "MODESTREAM_GATEWAY_BIND": f"127.0.0.1:{free_port()}",
        "MODESTREAM_GATEWAY_KEYS": str(keys),
    }
    command = [sys.executable, "-m", "streams", "gateway"]
    written: list[str] = []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            written.append(line)
            if "Application startup complete" in line:
                process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    return [json.loads(line) for line in written]


def test_first_line_is_the_start_and_the_last_one_the_end(lines: list[dict[str, Any]]) -> None:
    assert lines[0]["event"] == "starting"
    assert lines[-1]["event"] == "ended"
    assert lines[-1]["code"] == 0


def test_signal_is_told_once(lines: list[dict[str, Any]]) -> None:
    assert [line["event"] for line in lines].count("stopping by SIGTERM") == 1


def test_lines_of_the_server_have_its_logger(lines: list[dict[str, Any]]) -> None:
    assert "uvicorn.error" in {line.get("logger") for line in lines}


def test_administrators_are_told_at_the_start(lines: list[dict[str, Any]]) -> None:
    [told] = [line for line in lines if "are administrators" in line["event"]]
    assert told["level"] == "warning"
