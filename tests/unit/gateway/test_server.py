import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.keys.key_file import KeyFile
from gateway.server import run_gateway
from gateway.settings import GatewaySettings


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that another process listens at: a gateway ends there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def warnings_of(caplog: pytest.LogCaptureFixture, taken: str, **given: Any) -> list[str]:
    with caplog.at_level(logging.WARNING, "gateway.server"):
        assert run_gateway(GatewaySettings(_env_file=None, gateway_bind=taken, **given)) == os.EX_UNAVAILABLE
    return [
        record.getMessage()
        for record in caplog.records
        if (record.name, record.levelno) == ("gateway.server", logging.WARNING)
    ]


def test_gateway_without_keys_says_what_every_caller_may(caplog: pytest.LogCaptureFixture, taken: str) -> None:
    [warning] = warnings_of(caplog, taken)
    assert "edit the pipelines" in warning


def test_gateway_with_keys_does_not(caplog: pytest.LogCaptureFixture, taken: str, tmp_path: Path) -> None:
    KeyFile(keys=()).write(tmp_path / "keys.json")
    assert warnings_of(caplog, taken, gateway_keys=tmp_path / "keys.json") == []
