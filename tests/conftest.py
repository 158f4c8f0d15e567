"""Markers by folder, a guard against other hosts and brokers, and shared fixtures."""

import gc
import ipaddress
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import certifi
import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.up.broker import KafkaBroker
from tests.properties import register_profiles

KINDS = ("unit", "contract", "stream", "live", "browser", "wheels")
"""The test folders, each with a marker of its name."""

register_profiles()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder."""
    for item in items:
        kind = item.path.relative_to(Path(__file__).parent).parts[0]
        if kind in KINDS:
            item.add_marker(kind)


# While tests are collected, only what stays is made: a million objects and more, with what the tests import.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from now on, and leave what was imported out of it."""
    gc.freeze()
    # A worker's, nearly: with Python's own thresholds a tenth of the processor time went into looking.
    gc.set_threshold(50_000, 10, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Reject other hosts and brokers in a test and its fixtures, unless it is one that downloads and starts Kafka."""
    if any(map(item.get_closest_marker, ("live", "browser", "wheels"))):
        return (yield)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", AUTHORITY.name)
        for name in ("connect", "connect_ex", "sendto"):
            patched.setattr(socket.socket, name, loopback_only(getattr(socket.socket, name)))
        patched.setattr(KafkaBroker, "start", reject_broker)
        return (yield)


# Each HTTP client reads all authorities that are trusted, 57 ms, and a test on the loopback needs none of them.
AUTHORITY = NamedTemporaryFile("w", suffix=".pem")  # noqa: SIM115 - until the process ends
_first, _end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition("-----END CERTIFICATE-----\n")
AUTHORITY.write(_first + _end)
AUTHORITY.flush()


def loopback_only(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of sockets whose last argument is an address."""

    def guarded(self: socket.socket, *arguments: Any) -> Any:
        address = arguments[-1]
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_loopback(address[0]):
            raise AssertionError(f"a test that is not `live` connects to {address[0]}")
        return call(self, *arguments)

    return guarded


def reject_broker(_: KafkaBroker) -> None:
    """Stand in for `KafkaBroker.start`."""
    raise AssertionError("a test that is not `live` starts a broker")


def is_loopback(host: str) -> bool:
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
