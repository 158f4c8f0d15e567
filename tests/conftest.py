"""Markers by folder, a guard against connections to other hosts, and fixtures of several kinds of tests."""

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex

KINDS = ("unit", "contract", "stream", "live")
"""The test folders, each with a marker of its name."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder."""
    for item in items:
        kind = item.path.relative_to(Path(__file__).parent).parts[0]
        if kind in KINDS:
            item.add_marker(kind)


@pytest.fixture(autouse=True)
def _no_other_hosts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reject connections to other hosts; only live tests may connect, as they download Kafka."""
    if request.node.get_closest_marker("live"):
        return
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_loopback(address[0]):
            raise AssertionError(f"a test that is not `live` connects to {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def is_loopback(host: str) -> bool:
    """True for `localhost` and the addresses of the loopback interface."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture
def words(tmp_path: Path) -> Iterator[SqliteLexicalIndex]:
    """An empty lexical index that serves partition 0."""
    opened = SqliteLexicalIndex(tmp_path)
    opened.open(0)
    yield opened
    opened.close()
