"""A hub of models over a folder, with Hugging Face's routes: `folder/<organisation>/<model>/<files>`.

Clients find it by the environment variable `HF_ENDPOINT`. Each file has the SHA-256 that it is served with.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

REVISION = "c" * 40

CHUNK_BYTES = 4096


@dataclass
class ModelHub:
    folder: Path
    address: str = ""
    stated_bytes: dict[str, int] = field(default_factory=dict)
    """Sizes of files, by name, that the list of files states instead of their own."""
    damaged: set[str] = field(default_factory=set)
    """Files that arrive with other bytes than the listed hash says."""
    status: int = 200
    """Another status answers every request."""
    stop_after: int | None = None
    """Bytes of a file after which the answer waits for `go_on`."""
    requests: list[str] = field(default_factory=list)
    """Method, path and range of every request."""
    stopped: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def listing(self, model: str) -> dict[str, Any]:
        """Return the answer about a model."""
        files = sorted(path for path in (self.folder / model).rglob("*") if path.is_file())
        return {"id": model, "sha": REVISION, "siblings": [self._sibling(model, path) for path in files]}

    def _sibling(self, model: str, path: Path) -> dict[str, Any]:
        name, content = path.relative_to(self.folder / model).as_posix(), path.read_bytes()
        size = self.stated_bytes.get(name, len(content))
        sha256 = hashlib.sha256(content).hexdigest()
        return {"rfilename": name, "size": size, "lfs": {"size": size, "sha256": sha256, "pointerSize": 130}}


class HubHandler(BaseHTTPRequestHandler):
    """Answers one request of a hub."""

    protocol_version = "HTTP/1.1"
    hub: ModelHub

    def do_GET(self) -> None:
        """Answer with the list of a model's files, or with a file."""
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        hub.requests.append(" ".join((self.command, path, self.headers.get("Range", ""))).strip())
        model, _, rest = path.removeprefix("/").partition("/resolve/")
        listed = path.removeprefix("/api/models/")
        if hub.status != 200:
            self._send(hub.status, b"")
        elif path.startswith("/api/models/") and (hub.folder / listed).is_dir():
            self._send(200, json.dumps(hub.listing(listed)).encode())
        elif rest and (file := hub.folder / model / rest.partition("/")[2]).is_file():
            self._send_file(file)
        else:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815 - the name that the server looks for

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _send_file(self, file: Path) -> None:
        content = file.read_bytes()
        etag = hashlib.sha256(content).hexdigest()
        if file.name in self.hub.damaged:
            content = content[::-1]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        self.send_response(206 if start else 200)
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": REVISION, "Content-Length": str(len(content) - start)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        for position in range(start, len(content), CHUNK_BYTES):
            if self.hub.stop_after is not None and position >= self.hub.stop_after:
                self.wfile.flush()
                self.hub.stopped.set()
                self.hub.go_on.wait()
            try:
                self.wfile.write(content[position : position + CHUNK_BYTES])
            except ConnectionError:  # The client was killed.
                return

    def log_message(self, *_: Any) -> None:
        """Log nothing: requests are in `ModelHub.requests`."""


@contextmanager
def serving(folder: Path) -> Iterator[ModelHub]:
    """Serve the models below a folder, on a free port of the loopback."""
    hub = ModelHub(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (HubHandler,), {"hub": hub}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        hub.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
