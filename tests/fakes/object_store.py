"""A bucket of an object store on this machine: the calls of S3's API that files need, over a dict."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class _Bucket(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]
    parts: dict[str, dict[int, bytes]]

    def do_PUT(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "partNumber" in query:
            self.parts.setdefault(query["uploadId"][0], {})[int(query["partNumber"][0])] = body
        else:
            self.objects[key] = body
        self._answer(200, etag=hashlib.md5(body).hexdigest())

    def do_POST(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "uploads" in query:
            self._answer(
                200,
                f"<InitiateMultipartUploadResult><UploadId>{len(self.parts)}</UploadId></InitiateMultipartUploadResult>",
            )
        elif "delete" in query:
            named = re.findall(r"<Key>(.*?)</Key>", body.decode())
            for name in named:
                self.objects.pop(name, None)
            deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in named)
            self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>")
        else:
            parts = self.parts.pop(query["uploadId"][0])
            self.objects[key] = b"".join(parts[number] for number in sorted(parts))
            self._answer(200, '<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>')

    def do_GET(self) -> None:
        key, query = self._asked()
        if "list-type" in query:
            prefix = query.get("prefix", [""])[0]
            shown = "".join(
                f"<Contents><Key>{escape(name)}</Key><LastModified>2026-03-01T09:30:00.000Z</LastModified>"
                f'<ETag>"e"</ETag><Size>{len(body)}</Size></Contents>'
                for name, body in sorted(self.objects.items())
                if name.startswith(prefix)
            )
            self._answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{shown}</ListBucketResult>")
        elif key in self.objects:
            self._answer(200, self.objects[key])
        else:
            self._answer(404, "<Error><Code>NoSuchKey</Code></Error>")

    def do_DELETE(self) -> None:
        self.objects.pop(self._asked()[0], None)
        self._answer(204)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix("/bucket").lstrip("/")
        return key, parse_qs(parts.query, keep_blank_values=True)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _answer(self, status: int, content: str | bytes = b"", etag: str = "e") -> None:
        body = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", f'"{etag}"')
        self.send_header("last-modified", "Sun, 01 Mar 2026 09:30:00 GMT")
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def bucket_served() -> Iterator[str]:
    """Serve an empty bucket named `bucket`; yield the address of its store."""
    handler = type("Bucket", (_Bucket,), {"objects": {}, "parts": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
