"""Messages of the command line about invalid settings."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def started(*options: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m streams worker` with invalid settings or options until it exits."""
    environment = os.environ | {f"MODESTREAM_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "streams", "worker", *options]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PARTITIONS", "0", "setting MODESTREAM_PARTITIONS: "),
        ("LLM_PROFILES", '{"x": {"model": "m"}}', "must be named 'default'"),
        ("LLM_PROFILES", '{"default": {', "llm_profiles"),
        ("EMBEDDERS", '{"general": {"path": "p", "dim": 3}}', "setting MODESTREAM_EMBEDDERS: "),
        ("EMBEDDERS", '{"mine": {"path": "p"}}', "setting MODESTREAM_EMBEDDERS.mine.dim: "),
    ],
)
def test_invalid_setting_is_named_in_one_line(name: str, value: str, message: str) -> None:
    ended = started(**{name: value})
    assert ended.returncode == 1
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_no_more_workers_than_partitions() -> None:
    ended = started("--processes", "5", PARTITIONS="4")
    assert ended.returncode == 2
    assert "5 is not in 1..4, the number of partitions" in ended.stderr


def test_key_in_a_profile_is_not_printed() -> None:
    profile = {"model": "openai/m", "api_key": "sk-do-not-print-me"}
    ended = started(LLM_PROFILES=json.dumps({"default": profile}))
    assert "setting MODESTREAM_LLM_PROFILES.default.api_key: " in ended.stderr
    assert "do-not-print-me" not in ended.stderr


def test_what_is_stored_is_for_its_owner_alone(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        # Refused after the folders are made.
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "streams", "up", "--data-dir", str(tmp_path / "data"), "--port", port]
        subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").iterdir()}
    assert modes == {"run": 0o700, "logs": 0o700}
