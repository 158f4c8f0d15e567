"""`python -m bench.language_server`: a process of its own that answers OpenAI's chat completions, or does not.

It prints its port. Lines on standard input say how it stands from then on: `up`, `hang` (requests are taken and never
answered) or `refuse` (nobody listens). It reads the mode of a turn in its last `[[name]]`, after `LATENCY_S`.
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

from bench.system import ROOT

MARK = re.compile(r"\[\[([a-z0-9_-]+)\]\]")

LATENCY_S = 0.15
"""A small model's time for a short answer: with eight questions at once fifty turns a second."""


class LanguageServer:
    """Listens on a port of its own while it is up, and takes it again after a refusal."""

    def __init__(self) -> None:
        self._standing = "up"
        self._left = asyncio.Event()
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
            await self._become(line.decode().strip())
        self._left.set()
        await self._runner.cleanup()

    async def _become(self, standing: str) -> None:
        self._standing = standing
        self._left.set()
        self._left = asyncio.Event()
        if standing == "refuse" and self._site is not None:
            await self._site.stop()
            self._site = None
        elif standing != "refuse" and self._site is None:
            await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await self._site.start()

    async def _complete(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if self._standing == "up":
            await asyncio.sleep(LATENCY_S)
        if self._standing == "up":
            return web.json_response(_completion(asked))
        if self._standing == "hang":
            await self._left.wait()
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


def _completion(asked: dict[str, Any]) -> dict[str, Any]:
    marks = MARK.findall(asked["messages"][-1]["content"])
    said = {"role": "assistant", "content": json.dumps({"mode": marks[-1] if marks else None})}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": asked["model"],
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1500, "completion_tokens": 20, "total_tokens": 1520},
    }


@asynccontextmanager
async def language_server() -> AsyncIterator[tuple[str, Callable[[str], None]]]:
    """Its `api_base`, and what tells it how to stand; it ends with the block."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.language_server"), stdin=PIPE, stdout=PIPE, cwd=ROOT, start_new_session=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    commands = server.stdin
    try:
        port = int(await server.stdout.readline())
        yield f"http://127.0.0.1:{port}/v1", lambda standing: commands.write(f"{standing}\n".encode())
    finally:
        commands.close()
        await server.wait()


if __name__ == "__main__":
    asyncio.run(LanguageServer().run())
