"""Records written by a C client, kcat."""

import shutil
from asyncio import create_subprocess_exec
from asyncio.subprocess import DEVNULL, PIPE

import pytest

from tests.worlds.live.processes import Deployment

needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


async def produce(deployment: Deployment, topic: str, lines: bytes, *options: str | bytes) -> None:
    shell = await create_subprocess_exec(
        *("kcat", "-b", deployment.bootstrap, "-P", "-t", topic, *options), stdin=PIPE, stdout=DEVNULL
    )
    await shell.communicate(lines)
    assert shell.returncode == 0
