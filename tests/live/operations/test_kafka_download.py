"""The download of Kafka from a faulty registry, replaced by a local HTTP server."""

import gc
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from schemas.failures import Unavailable
from streams.up import installing
from streams.up.installing import Download, Jar, installed_class_path

CONTENT = b"the contents of a jar" * 1000

Reply = Callable[[BaseHTTPRequestHandler, int], None]
"""Answers a request, given the number of earlier ones."""


def unheard(_: str) -> None:
    """Stand for a registry without a server."""


def whole(handler: BaseHTTPRequestHandler, _: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(CONTENT)


def cut_short(handler: BaseHTTPRequestHandler, _: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(CONTENT[:500])
    handler.close_connection = True


def changed(handler: BaseHTTPRequestHandler, _: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "5")
    handler.end_headers()
    handler.wfile.write(b"other")


def busy(handler: BaseHTTPRequestHandler, _: int) -> None:
    handler.send_error(503)


def twice(first: Reply) -> Reply:
    """Give two bad answers, then good ones."""
    return lambda handler, number: (first if number < 2 else whole)(handler, number)


@contextmanager
def registry(reply: Reply) -> Iterator[str]:
    """Yield the address of a server with these answers for jars, and without checksum files."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.endswith(".jar"):
                self.send_error(404)
                return
            asked.append(self.path)
            reply(self, len(asked) - 1)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""The resolver leaves its connections to the garbage collector."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(installing, "INITIAL_DOWNLOAD_BACKOFF_S", 0.001)
    yield
    # Collect here, where the warning is expected.
    gc.collect()


WANTED = [Jar("org.example:thing:1.0", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))]


@pytest.mark.parametrize("reply", [whole, twice(cut_short), twice(changed), twice(busy)])
def test_download_is_retried_until_the_jar_is_complete(tmp_path: Path, reply: Reply) -> None:
    with registry(reply) as address:
        (path,) = Download(WANTED, tmp_path, unheard, address).run()
    assert path.read_bytes() == CONTENT
    assert installed_class_path(WANTED, tmp_path) == [path]
    assert [each for each in tmp_path.iterdir() if "incomplete" in each.name] == []


@pytest.mark.parametrize("reply", [cut_short, changed, busy])
def test_incomplete_download_is_unavailable_and_leaves_no_files(tmp_path: Path, reply: Reply) -> None:
    with registry(reply) as address, pytest.raises(Unavailable, match=r"org\.example:thing:1\.0 can't be fetched"):
        Download(WANTED, tmp_path, unheard, address).run()
    assert installed_class_path(WANTED, tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_cancelled_download_ends_and_leaves_nothing(tmp_path: Path) -> None:
    cancel: list[Callable[[], None]] = []

    def cancelling(handler: BaseHTTPRequestHandler, number: int) -> None:
        cancel[0]()
        whole(handler, number)

    with registry(cancelling) as address:
        download = Download(WANTED, tmp_path, unheard, address)
        cancel.append(download.cancel)
        with pytest.raises(Unavailable):
            download.run()
    assert list(tmp_path.iterdir()) == []


def test_different_jars_are_another_installation(tmp_path: Path) -> None:
    with registry(whole) as address:
        Download(WANTED, tmp_path, unheard, address).run()
    assert installed_class_path([Jar("org.example:thing:1.0", "0" * 64, 1)], tmp_path) is None
