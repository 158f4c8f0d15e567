"""Free loopback ports."""

import socket


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
