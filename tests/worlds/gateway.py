"""The gateway's HTTP door in this process, over any wire: requests in, answers out, no socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from gateway.http.app import create_app
from gateway.service.calls import Backend
from gateway.service.service import MemoryService


async def always_ready() -> bool:
    return True


@asynccontextmanager
async def http_over(service: MemoryService | Backend, **how: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Serve a service, or one over this wire; `how` goes to `create_app`."""
    served = service if isinstance(service, MemoryService) else MemoryService(service)
    app = create_app(served, how.pop("is_ready", always_ready), **how)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    files, client = served.files.running(), httpx.AsyncClient(transport=transport, base_url="http://localhost")
    async with files, client:
        yield client
