"""A small HTTP server that answers like Qdrant, or as a test says, and records the requests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

DONE = {"operation_id": 1, "status": "completed"}
"""The response to an applied write."""


ALREADY = "already exists"
"""The response to the creation of a collection that another worker has just created."""


@dataclass(frozen=True)
class Asked:
    """One request: `PUT /collections/x/points?wait=true` and its body."""

    line: str
    body: Any


@dataclass
class QdrantStub:
    """Has the description of one collection, and no data."""

    port: int = 0
    status: int | None = None
    headers: str = ""
    body: bytes | None = None
    hangs: bool = False
    another_is_faster: bool = False
    write_result: dict[str, Any] = field(default_factory=lambda: dict(DONE))
    asked: list[Asked] = field(default_factory=list)
    collection: dict[str, Any] | None = None
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *headers = head.decode().split("\r\n")
                lengths = [
                    int(header.split(":")[1]) for header in headers if header.lower().startswith("content-length")
                ]
                body = await reader.readexactly(sum(lengths))
                writer.write(self.answer(first.rsplit(" ", 1)[0], json.loads(body or b"null")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, line: str, body: Any) -> bytes:
        self.asked.append(Asked(line, body))
        if self.hangs:
            return b""
        status, text = self.status or 200, self.body
        if text is None:
            method, path = line.split(" ")
            result = self.result(method, path, body) if status == 200 else None
            status = 404 if result is None and status == 200 else status
            status = 409 if result == ALREADY else status
            text = json.dumps({"time": 0.0, "status": "ok", "result": result}).encode()
        return f"HTTP/1.1 {status} Because\r\n{self.headers}content-length: {len(text)}\r\n\r\n".encode() + text

    def result(self, method: str, path: str, body: Any) -> Any:
        match method, path.split("?", maxsplit=1)[0].strip("/").split("/"):
            case "POST", ["collections", "aliases"]:
                for action in body["actions"]:
                    self.aliases[action["create_alias"]["alias_name"]] = action["create_alias"]["collection_name"]
                return True
            case "GET", ["aliases"]:
                return {"aliases": [{"alias_name": a, "collection_name": c} for a, c in self.aliases.items()]}
            case "GET", ["collections", _, "exists"]:
                return {"exists": self.collection is not None}
            case "PUT", ["collections", _]:
                self.collection = body
                return ALREADY if self.another_is_faster else True
            case _ if self.collection is None:
                return None
            case "GET", ["collections", _]:
                return described(self.collection)
            case "POST", ["collections", _, "points", "query", "batch"]:
                return [{"points": []} for _ in body["searches"]]
            case _:
                return self.write_result


def described(created: dict[str, Any]) -> dict[str, Any]:
    hnsw = {"m": 0, "payload_m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
    optimizer = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0}
    config = {
        "params": {"vectors": created["vectors"]},
        "hnsw_config": hnsw,
        "optimizer_config": optimizer | {"flush_interval_sec": 5},
        "metadata": created.get("metadata"),
    }
    return {"status": "green", "optimizer_status": "ok", "segments_count": 1, "config": config, "payload_schema": {}}


@asynccontextmanager
async def qdrant_stub() -> AsyncIterator[QdrantStub]:
    stub = QdrantStub()
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
    stub.port = server.sockets[0].getsockname()[1]
    try:
        yield stub
    finally:
        server.close()
