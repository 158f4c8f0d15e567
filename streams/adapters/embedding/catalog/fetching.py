"""Fetch the files of models in the background: a process for each, few at a time.

Guaranteed: nothing waits for a fetch but its own model; one that gets no bytes for a while is given up; a process ends
with its worker.
"""

import asyncio
import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

import structlog

from schemas.failures import ModelMissing
from streams.adapters.embedding.inference.local_model import LocalModel, ensure_model_folder, fetched_folder
from streams.adapters.embedding.process.embedder_process import PROJECT_ROOT

FETCH_COMMAND = (sys.executable, "-m", "streams.adapters.embedding.catalog.fetch_process")

ENVIRONMENT = {
    # Its own protocol reports no bytes on the way, and does not resume.
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}

MAX_FETCHES = 2
"""Models that a worker fetches at the same time; further ones wait."""

MAX_SILENCE_S = 120.0
"""Time without a further byte after which a fetch is given up, and tried again later."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of fetched models: bytes of one, their number, and the bytes of all. 0: none."""

    max_model_bytes: int = 0
    max_models: int = 0
    max_total_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """Bytes on the disk, of all."""

    bytes: int
    total: int


class ModelFetches:
    def __init__(self) -> None:
        self._progress: dict[str, FetchProgress] = {}
        self._slots = asyncio.Semaphore(MAX_FETCHES)

    def progress(self, hub: str) -> FetchProgress | None:
        """Return how far the fetch from a repository is; None unless it is under way and its size is known."""
        return self._progress.get(hub)

    async def fetch(self, local: LocalModel, hub: str, limits: FetchLimits) -> None:
        """Fetch a model unless its files are there. Raises ModelMissing with code and advice."""
        try:
            ensure_model_folder(local, hub)
        except FileNotFoundError:
            async with self._slots:
                await self._run(local, hub, limits)

    async def _run(self, local: LocalModel, hub: str, limits: FetchLimits) -> None:
        options = asdict(limits) | {
            "hub": hub,
            "files": [local.model_file, *local.companions],
            "folder": str(fetched_folder(local, hub).absolute()),
            "by_hand": str(local.directory),
        }
        process = await asyncio.create_subprocess_exec(
            *FETCH_COMMAND,
            json.dumps(options),
            stdin=asyncio.subprocess.PIPE,  # Its end tells the process that this worker has died.
            stdout=asyncio.subprocess.PIPE,
            cwd=PROJECT_ROOT,
            env=os.environ | ENVIRONMENT,
        )
        log.info("model is being fetched", hub=hub, pid=process.pid)
        failure: dict[str, Any] = {}
        assert process.stdout is not None
        try:
            while line := await asyncio.wait_for(process.stdout.readline(), MAX_SILENCE_S):
                fields = json.loads(line)
                if "code" in fields:
                    failure = fields
                else:
                    self._progress[hub] = FetchProgress(**fields)
            status = await process.wait()
        except TimeoutError:
            reason = f"no byte of {hub} came for {MAX_SILENCE_S:g} s: it is tried again, and goes on where it was"
            raise ModelMissing(reason, "unavailable") from None
        finally:
            self._progress.pop(hub, None)
            if process.returncode is None:
                process.kill()
                await process.wait()
        if failure:
            raise ModelMissing(failure["message"], failure["code"])
        if status:
            raise ModelMissing(f"the fetch of {hub} ended with status {status}: it is tried again", "unavailable")
        log.info("model is fetched", hub=hub)
