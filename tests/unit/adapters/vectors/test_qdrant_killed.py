"""A server of vectors as a process of its own that is killed, comes back, and stands still."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.failures import Unavailable
from streams.adapters.vectors.server.qdrant_index import QdrantIndex
from streams.up.layout import free_port
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import EVERYTHING, X, ids, memory, over_grpc, point

SPACE = space_of(token_dim=2)
ROWS = np.ones((3, 2), np.float32)
POINT = replace(point(1), tokens=ROWS)


@asynccontextmanager
async def server_process(directory: Path, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    command = (sys.executable, "-m", "tests.fakes.qdrant_server", "--directory", str(directory), "--port", str(port))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert int(await process.stdout.readline()) == port
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_killed_server_loses_nothing_and_is_found_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    index = over_grpc(port, timeout_s=2.0)
    async with server_process(tmp_path, port) as process:
        await until_answered(index)
        await index.upsert(SPACE, [POINT])
        process.send_signal(signal.SIGKILL)
        await process.wait()
        with pytest.raises(Unavailable):
            await index.search(SPACE, X, EVERYTHING, 5)
    async with server_process(tmp_path, port) as process:
        async with asyncio.timeout(10):
            await until_answered(index)
        assert ids(await index.maxsim(SPACE, ROWS, EVERYTHING, 5)) == [memory(1)]
        process.send_signal(signal.SIGSTOP)
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unavailable):
            await index.search(SPACE, X, EVERYTHING, 5)
        assert asyncio.get_running_loop().time() - began < 4
        process.send_signal(signal.SIGCONT)
        await until_answered(index)
    await index.close()


async def until_answered(index: QdrantIndex) -> None:
    while True:
        try:
            await index.spaces()
        except Unavailable:
            await asyncio.sleep(0.1)
        else:
            return
