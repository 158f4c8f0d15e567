"""A gateway that is ready at once: answers every GET with 200 at `MODESTREAM_GATEWAY_BIND`."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer


class Ready(BaseHTTPRequestHandler):
    """Answers 200."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    host, _, port = os.environ["MODESTREAM_GATEWAY_BIND"].rpartition(":")
    HTTPServer((host, int(port)), Ready).serve_forever()
