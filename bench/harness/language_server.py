"""`python -m bench.harness.language_server`: a fake server of OpenAI's chat completions that can fail on demand.

It prints its port. Lines on standard input set its state: `up`, `hang` (requests are never answered) or `refuse` (the
port is closed). The answer is the mode in the last `[[name]]` of a turn, after `LATENCY_S`.
"""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from bench.harness.system import ROOT

MODE_TAG = re.compile(r"\[\[([a-z0-9_-]+)\]\]")

LATENCY_S = 0.15
"""A small model's time for a short answer; eight concurrent requests give fifty turns a second."""


class LanguageServer:
    """Listens on a free port, and on the same one again after `refuse`."""

    def __init__(self) -> None:
        self._state = "up"
        self._state_changed = asyncio.Event()
        self._site: web.TCPSite | None = None
        self._port = 0

    async def run(self) -> None:
        """Serve until standard input ends."""
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()
        self._port = self._runner.addresses[0][1]
        print(self._port, flush=True)
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async for line in lines:
            await self._set_state(line.decode().strip())
        self._state_changed.set()
        await self._runner.cleanup()

    async def _set_state(self, state: str) -> None:
        self._state = state
        self._state_changed.set()
        self._state_changed = asyncio.Event()
        if state == "refuse" and self._site is not None:
            await self._site.stop()
            self._site = None
        elif state != "refuse" and self._site is None:
            await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await self._site.start()

    async def _complete(self, request: web.Request) -> web.Response:
        request_body = await request.json()
        if self._state == "up":
            await asyncio.sleep(LATENCY_S)
        if self._state == "up":
            return web.json_response(_completion(request_body))
        if self._state == "hang":
            await self._state_changed.wait()
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


def _completion(request_body: dict[str, Any]) -> dict[str, Any]:
    modes = MODE_TAG.findall(request_body["messages"][-1]["content"])
    message = {"role": "assistant", "content": json.dumps({"mode": modes[-1] if modes else None})}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request_body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1500, "completion_tokens": 20, "total_tokens": 1520},
    }


@asynccontextmanager
async def language_server() -> AsyncIterator[tuple[str, Callable[[str], None]]]:
    """Start the server; yield its `api_base` and a function that sets its state. It stops at the end of the block."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.harness.language_server"),
        stdin=PIPE,
        stdout=PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    commands = server.stdin
    try:
        port = int(await server.stdout.readline())
        yield f"http://127.0.0.1:{port}/v1", lambda state: commands.write(f"{state}\n".encode())
    finally:
        commands.close()
        await server.wait()


if __name__ == "__main__":
    asyncio.run(LanguageServer().run())
