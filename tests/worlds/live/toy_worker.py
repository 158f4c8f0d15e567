"""A worker for the supervisor's tests: it answers `/live`, writes down what it was given and how it was ended.

Files in its data directory steer it: `refuse` makes it end at once, `stuck` makes it say 503,
`linger` makes it end only when that file is gone.
"""

import json
import os
import signal
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import FrameType

DIRECTORY = Path(os.environ["MODESTREAM_DATA_DIR"])
BROKER = os.environ["MODESTREAM_BROKER"]


class Live(BaseHTTPRequestHandler):
    """The liveness page."""

    def do_GET(self) -> None:
        """Say whether it makes progress."""
        self.send_response(503 if (DIRECTORY / "stuck").exists() else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def end(order: int, _: FrameType | None) -> None:
    """Write down which signal came, and whether the broker was still there."""
    with socket.socket() as client:
        host, port = BROKER.removeprefix("kafka://").split(":")
        there = client.connect_ex((host, int(port))) == 0
    (DIRECTORY / "ended").write_text(json.dumps({"signal": order, "broker_there": there}))
    while (DIRECTORY / "linger").exists():
        time.sleep(0.02)
    sys.exit(0)


if __name__ == "__main__":
    if (DIRECTORY / "refuse").exists():
        sys.exit("a setting is wrong")
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    server = HTTPServer(("127.0.0.1", 0), Live)
    (DIRECTORY / "run" / "metrics.port").write_text(str(server.server_port))
    (DIRECTORY / "given").write_text(json.dumps({"pid": os.getpid(), "broker": BROKER}))
    server.serve_forever()
