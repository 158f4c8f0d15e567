"""Messages of the command line about invalid settings."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from gateway.keys.key_file import Key, KeyFile
from gateway.settings import GatewaySettings
from streams.__main__ import main
from streams.configuration import read_settings
from streams.settings import Settings
from tests.builders.taxonomies import changed

ROOT = Path(__file__).parents[3]


def started(*options: str, command: str = "worker", **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m streams COMMAND` with invalid settings or options until it exits."""
    environment = os.environ | {f"MODESTREAM_{name}": value for name, value in settings.items()}
    line = [sys.executable, "-m", "streams", *filter(None, [command]), *options]
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def called(*options: str, command: str = "worker", **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process: another one takes a second to start."""
    line = ["streams", *filter(None, [command]), *options]
    out, err = StringIO(), StringIO()
    umask, level = os.umask(0o077), logging.getLogger("aiokafka").level
    try:
        with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
            for name, value in settings.items():
                patched.setenv(f"MODESTREAM_{name}", value)
            patched.setattr(sys, "argv", line)
            with pytest.raises(SystemExit) as end:
                main()
    finally:
        os.umask(umask)
        logging.getLogger("aiokafka").setLevel(level)
    code = end.value.code
    assert isinstance(code, int), code
    return subprocess.CompletedProcess(line, code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LLM_PROFILES", '{"x": {"model": "m"}}', "must be named 'default'"),
        ("LLM_PROFILES", '{"default": {', "setting MODESTREAM_LLM_PROFILES: it is not JSON: "),
        ("TOPIC_PREFIX", "bad prefix!", "setting MODESTREAM_TOPIC_PREFIX: Kafka takes letters, digits, "),
        ("EMBEDDERS", '{"general": {"path": "p", "dim": 3}}', "setting MODESTREAM_EMBEDDERS: "),
        ("EMBEDDERS", '{"mine": {"path": "p"}}', "setting MODESTREAM_EMBEDDERS.mine.dim: "),
    ],
)
def test_invalid_setting_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"MODESTREAM_{name}", value)
    refusal = refusal_of(Settings)
    assert message in refusal
    assert len(refusal.splitlines()) == 1


def refusal_of(settings: type[BaseSettings]) -> str:
    with pytest.raises(SystemExit) as refusal:
        read_settings(settings)
    return str(refusal.value.code)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PARTITIONS", "0", "setting MODESTREAM_PARTITIONS: "),
        (
            "KAFKA_SECURITY",
            '{"username": "u", "password_env": "NO_SUCH"}',
            "MODESTREAM_KAFKA_SECURITY: the environment",
        ),
        ("KAFKA_SECURITY", '{"protocol": "SSL", "ca_file": "/no/ca.pem"}', "'/no/ca.pem'"),
    ],
)
def test_command_ends_with_the_refusal_of_a_setting_and_its_code(name: str, value: str, message: str) -> None:
    ended = called(**{name: value})
    assert ended.returncode == os.EX_CONFIG
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_program_ends_with_the_code_of_its_command() -> None:
    ended = started(PARTITIONS="0")
    assert ended.returncode == os.EX_CONFIG
    assert ended.stderr.startswith("setting MODESTREAM_PARTITIONS: ")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("GATEWAY_BIND", "0.0.0.0:80", "setting MODESTREAM_GATEWAY_BIND: 0.0.0.0:80 is reachable by others"),
        ("GATEWAY_BIND", "28090", "setting MODESTREAM_GATEWAY_BIND: 28090 is not host:port"),
        ("GATEWAY_METRICS_BIND", "9465", "setting MODESTREAM_GATEWAY_METRICS_BIND: 9465 is not host:port"),
    ],
)
def test_gateway_names_the_refused_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"MODESTREAM_{name}", value)
    assert message in refusal_of(GatewaySettings)


def test_gateway_ends_with_the_refusal_of_its_keys_and_its_code() -> None:
    ended = started(command="gateway", GATEWAY_KEYS="/no/keys.json")
    assert ended.returncode == os.EX_CONFIG
    assert "setting MODESTREAM_GATEWAY_KEYS: there is no file /no/keys.json" in ended.stderr.splitlines()[-1]


def test_name_that_no_setting_has_is_told_with_a_similar_one() -> None:
    ended = called(command="schemas", PARTITION="12", GATEWAY_NAME="the gateway judges it")
    assert ended.returncode == 0
    assert ended.stderr == (
        "MODESTREAM_PARTITION is ignored: there is no such setting; MODESTREAM_PARTITIONS is similar\n"
    )


def test_worker_logs_the_name_that_no_setting_has(tmp_path: Path) -> None:
    ended = started(BROKR="x", DATA_DIR=str(tmp_path / "data"), AUTHORIZATION="/no/grants.json")
    lines = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines[:2]] == [
        "starting",
        "MODESTREAM_BROKR is ignored: there is no such setting; MODESTREAM_BROKER is similar",
    ]
    assert lines[0]["settings"] == {"data_dir": str(tmp_path / "data"), "authorization": "/no/grants.json"}
    [last] = [line for line in lines if line["event"] == "ended"]
    assert last["code"] == os.EX_CONFIG
    assert ended.returncode == os.EX_CONFIG
    assert "setting MODESTREAM_AUTHORIZATION: " in last["reason"]


def test_worker_names_the_place_in_a_broken_taxonomy(tmp_path: Path) -> None:
    taxonomy = tmp_path / "modes.json"
    taxonomy.write_text(changed({"modes.TASK.drop": ["doubts"]}))
    ended = started(DATA_DIR=str(tmp_path / "data"), TAXONOMY=str(taxonomy))
    assert ended.returncode == os.EX_CONFIG
    assert f"setting MODESTREAM_TAXONOMY: {taxonomy}: modes.TASK.drop: " in ended.stderr.splitlines()[-1]


def test_output_may_be_cut_off() -> None:
    command = f"{sys.executable} -m streams schemas | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == ""
    assert ended.stderr == ""
    assert ended.returncode == 128 + signal.SIGPIPE


def test_list_of_keys_may_be_cut_off(tmp_path: Path) -> None:
    keys = KeyFile(keys=tuple(Key(id=f"k{n}", sha256="0" * 64, principal="p" * 200) for n in range(500)))
    keys.write(tmp_path / "keys.json")
    command = f"{sys.executable} -m streams key list | true; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"MODESTREAM_GATEWAY_KEYS": str(tmp_path / "keys.json")}
    ended = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stderr == ""
    assert ended.returncode == 128 + signal.SIGPIPE


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert called("--version", command="").stdout == f"{project['version']}\n"


def test_no_more_workers_than_partitions() -> None:
    ended = called("--processes", "5", PARTITIONS="4")
    assert ended.returncode == 2
    assert "5 is not in 1..4, the number of partitions" in ended.stderr


def test_key_in_a_profile_is_not_printed() -> None:
    profile = {"model": "openai/m", "api_key": "sk-do-not-print-me"}
    ended = called(LLM_PROFILES=json.dumps({"default": profile}))
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


def test_remember_names_a_broker_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    ended = started("hello", "--user", "ana", command="remember", BROKER=f"kafka://127.0.0.1:{port}")
    assert ended.returncode == 1
    assert ended.stderr.startswith("remember: ")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"GATEWAY_BIND": "0.0.0.0:0"}, "setting MODESTREAM_GATEWAY_BIND: 0.0.0.0:0 is reachable by others"),
        ({"GATEWAY_BIND": "192.0.2.1:0"}, "GATEWAY_BIND: up listens on 127.0.0.1 or on all addresses"),
        ({"GATEWAY_BIND": "0.0.0.0:0", "GATEWAY_KEYS": "/no/keys.json"}, "GATEWAY_KEYS: /no/keys.json: "),
    ],
)
def test_up_refuses_an_address_that_its_gateway_can_not_have(settings: dict[str, str], message: str) -> None:
    keys = {"GATEWAY_KEYS": "keys.json"} if "192" in settings["GATEWAY_BIND"] else {}
    assert message in called(command="up", **(keys | settings)).stderr
