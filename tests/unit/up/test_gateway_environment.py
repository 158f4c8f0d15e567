"""What the gateway of `up` has in its environment: of the worker's secrets its provider's key alone."""

import sys
from pathlib import Path

import pytest

from streams.up.layout import Layout
from streams.up.system import PROVIDER_KEY, gateway_service

PRINT_NAMES = (
    sys.executable,
    "-c",
    "import os; print(sorted(name for name in os.environ if name.endswith('_SECRET')))",
)


async def test_the_gateway_has_the_key_of_its_provider_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("MODEL_SECRET", "STORE_SECRET")
    for name in secrets:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv(PROVIDER_KEY, "MODEL_SECRET")
    layout = Layout(tmp_path)
    layout.create()
    gateway = await gateway_service(layout, PRINT_NAMES, "127.0.0.1:1", ("127.0.0.1", 1), without=secrets).start()
    await gateway.wait()
    assert layout.log("gateway").read_text() == "['MODEL_SECRET']\n"
