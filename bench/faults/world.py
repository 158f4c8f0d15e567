"""The system that meets a fault: `streams up`, or processes of our own that are kept running."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from bench.harness.system import System, running

EMBEDDER_MODULE = "streams.adapters.embedding"
"""Part of the command line of a worker's embedder."""


class World(Protocol):
    """A running system."""

    @property
    def bootstrap(self) -> str:
        """Kafka's addresses, joined by commas."""

    @property
    def url(self) -> str:
        """The gateway's address."""

    def pid(self, child: str) -> int:
        """Return the pid of `broker`, `worker` or `gateway`."""


def embedder_pid(world: World) -> int:
    """Return the pid of the first embedder of the worker. Raises LookupError."""
    worker = world.pid("worker")
    for thread in Path(f"/proc/{worker}/task").iterdir():
        for child in (thread / "children").read_text().split():
            if EMBEDDER_MODULE in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
    raise LookupError("the worker has no embedder")


class Models:
    """A directory of exported models that all systems share: an export takes seconds of a core."""

    directory: Path

    @classmethod
    def settings(cls) -> Mapping[str, str]:
        """Return the settings that name it."""
        return {"MODESTREAM_MODEL_DIR": str(cls.directory)}


@asynccontextmanager
async def new_up() -> AsyncIterator[System]:
    """Run `streams up` in a new directory."""
    with TemporaryDirectory(prefix="modestream-faults-") as directory:
        async with running(Path(directory), Models.settings()) as system:
            yield system
