"""Free loopback ports."""

import socket

DEFAULT_HTTP_PORT = 8080
"""The gateway's port where no other is named and this one is free."""


def free_port() -> int:
    """Return a loopback port that is free at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def is_free(port: int) -> bool:
    """True if a server could listen on this loopback port now."""
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def choose_http_port(wanted: int | None) -> int:
    """Return the gateway's port: the wanted one; a free one for 0; the usual one, or a free one, for None."""
    if wanted is None:
        return DEFAULT_HTTP_PORT if is_free(DEFAULT_HTTP_PORT) else free_port()
    return wanted or free_port()
