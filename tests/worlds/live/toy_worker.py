"""A worker for tests of the supervisor: it answers `/live` and records its settings and its end.

Files in its data directory control it: `refuse` makes it exit at once, `stuck` makes it answer 503,
`linger` delays its end until the file is deleted.
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
    def do_GET(self) -> None:
        """Answer 200, or 503 if `stuck` exists."""
        self.send_response(503 if (DIRECTORY / "stuck").exists() else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Suppress the log."""


def end(order: int, _: FrameType | None) -> None:
    """Record the signal and whether the broker was still running."""
    with socket.socket() as client:
        host, port = BROKER.removeprefix("kafka://").split(":")
        is_broker_there = client.connect_ex((host, int(port))) == 0
    (DIRECTORY / "ended").write_text(json.dumps({"signal": order, "broker_there": is_broker_there}))
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
