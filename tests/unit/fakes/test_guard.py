"""The guard against connections to other hosts."""

import socket

import pytest


def test_a_connection_to_another_host_is_refused() -> None:
    with socket.socket() as unconnected, pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        unconnected.connect(("192.0.2.1", 9))
