"""The gateway in front of the in-memory pipeline, with keys and grants: real doors, service and worker, no network."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from modestream_client.records import Written
from starlette.routing import BaseRoute

from agents.commands.admit import Admit
from gateway.connection_settings import MODEL_TOOLS, MORE_TOOLS, USUAL_TOOLS
from gateway.http.app import create_app
from gateway.http.limits import Limits
from gateway.keys.callers import KeyCallers
from gateway.keys.key_file import Key, KeyFile, digest_of
from gateway.mcp.router import McpRouter
from gateway.service.boundaries import Boundaries
from gateway.service.events import Receipts
from gateway.service.service import MemoryService
from schemas.state.policies import Policy
from streams.adapters.policy_file import PolicyFile
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]

POLICY = Policy.model_validate(
    {
        "principals": {
            "owner": [{"user_id": "u1"}],
            "reader": [{"user_id": "u1", "may": ["read"]}],
            "writer": [{"user_id": "u1", "may": ["write"]}],
            "stranger": [{"user_id": "u2"}],
            "operator": [{"user_id": "*", "may": ["operate"]}],
            "of_one_project": [{"user_id": "u1", "project_id": "p1"}],
        }
    }
)
"""Grants of the principals: each has a key of its name."""

UNLIMITED = Limits(reads_per_second=1e6, writes_per_second=1e6, failed_logins_per_minute=1e6)


class RecordingWire(InMemoryTransport):
    """The in-memory transport; `sent` are the records that were written, as topic and record."""

    def __init__(self, pipeline: InMemoryPipeline) -> None:
        super().__init__(pipeline)
        self.sent: list[tuple[str, Json]] = []

    async def _write(self, topic: str, record: Json, *further: Any) -> Written:
        self.sent.append((topic, record))
        return await super()._write(topic, record, *further)


@dataclass
class GuardedGateway:
    app: FastAPI
    http: httpx.AsyncClient
    wire: RecordingWire

    async def ask(self, method: str, path: str, key: str | None = None, **how: Any) -> httpx.Response:
        headers = {**how.pop("headers", {}), **headers_of(key)}
        return await self.http.request(method, path, headers=headers, **how)

    async def begin(self, path: str, key: str | None = None, headers: Mapping[str, str] | None = None) -> int:
        """Return the status of an answer without an end, and hang up: the HTTP client in process would wait for it."""
        request = self.http.build_request("GET", path, headers={**(headers or {}), **headers_of(key)})
        return await _status_of(self.app, request)

    async def mcp(self, method: str, key: str | None = None, path: str = "/mcp/users/u1", **params: Any) -> Any:
        """Send a message of the protocol; return the answer."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        return await self.ask("POST", path, key, json=message, headers=headers)


def headers_of(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer ms_{key}"}


def write_keys(path: Path, *names: str, **more: Any) -> None:
    """Write a file with the key `ms_NAME` for each principal."""
    keys = [Key(id=name, sha256=digest_of(f"ms_{name}"), principal=name, **more) for name in names]
    KeyFile(keys=tuple(keys)).write(path)


def pipeline_with_grants(directory: Path, policy: Policy = POLICY) -> InMemoryPipeline:
    """Return a pipeline with a language model, whose worker knows the grants too."""
    settings = {"context_log": "ids"}
    return InMemoryPipeline(directory, profiles=ONE_PROFILE, admit=Admit(PolicyFile(policy)), more_settings=settings)


@asynccontextmanager
async def gateway_of(
    pipeline: InMemoryPipeline,
    keys: Path | None = None,
    limits: Limits = UNLIMITED,
    policy: Policy | None = POLICY,
    boundaries: Boundaries | None = None,
    doors: Callable[[MemoryService], Sequence[BaseRoute]] = lambda _: (),
) -> AsyncIterator[GuardedGateway]:
    """Run a gateway in front of a running pipeline; without a file of `keys` every caller may do everything.

    `doors` makes the routes of further doors.
    """
    callers = None if keys is None else KeyCallers(keys, policy, limits.failed_logins_per_minute)
    wire = RecordingWire(pipeline)

    async def read_receipts() -> None:
        receipts.take(pipeline.topics.records(pipeline.names.receipts))

    receipts = Receipts(read_receipts)
    service = MemoryService(wire, pipeline.scope_model, boundaries, files=pipeline.file_bytes, receipts=receipts)
    door = McpRouter(service, (*USUAL_TOOLS, *MODEL_TOOLS, *MORE_TOOLS))

    async def is_ready() -> bool:
        return callers is None or callers.is_sound

    app = create_app(
        service,
        is_ready,
        scope=pipeline.scope_model,
        callers=callers,
        limits=limits,
        routes=[*door.routes, *doors(service)],
        running=[door.running],
    )
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
    async with _alive(app), client:
        yield GuardedGateway(app, client, wire)


@asynccontextmanager
async def _alive(app: FastAPI) -> AsyncIterator[None]:
    """Run the lifespan in a task of its own, as a server does: a fixture may end in another task than it began in."""
    started, ending = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            started.set()
            await ending.wait()

    life = asyncio.create_task(live())
    await started.wait()
    try:
        yield
    finally:
        ending.set()
        await life


async def _status_of(app: FastAPI, request: httpx.Request) -> int:
    status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        if (first := next(messages, None)) is not None:
            return first
        await status
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            status.set_result(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "root_path": "",
    }
    answering = asyncio.create_task(app(scope, receive, send))
    try:
        async with asyncio.timeout(10):
            return await status
    finally:
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await answering
