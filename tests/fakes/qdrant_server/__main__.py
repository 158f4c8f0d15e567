"""`python -m tests.fakes.qdrant_server --directory D [--port N]`: serve until a signal; prints the port when ready."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from tests.fakes.qdrant_server.service import serving


async def serve(directory: Path, port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with serving(directory, port) as bound:
        sys.stdout.write(f"{bound}\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.qdrant_server", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    asyncio.run(serve(options.directory, options.port))
