"""A broker and a worker that are kept running, the broker first and the worker once that answers."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from schemas.failures import Unavailable
from streams.up.broker import KafkaBroker
from streams.up.installing import install_kafka
from streams.up.layout import Layout
from streams.up.logs import rotate_log
from streams.up.options import UpOptions
from streams.up.services import broker_service, worker_service
from streams.up.supervised import SupervisedChild

READINESS_INTERVAL_S = 0.2
"""The pause between two questions whether requests are answered."""

READINESS_TIMEOUT_S = 30.0
"""How long one such question may take."""

STARTING_NOTICE_INTERVAL_S = 10.0
"""How often someone who waits is told that the start still goes on."""

LOG_ROTATION_INTERVAL_S = 5.0
"""The pause between two looks at the size of the logs."""


async def run_system(options: UpOptions, layout: Layout) -> None:
    """Run until cancelled, and end the children in order. Raises Unavailable or Refused when it can't be started."""
    broker = KafkaBroker(layout, options.port, await install_kafka(options.cache, layout, options.tell))
    await broker.format()
    await _System(options, layout, broker).run()


class _System:
    def __init__(self, options: UpOptions, layout: Layout, broker: KafkaBroker) -> None:
        self._options = options
        self._layout = layout
        self._bootstrap = broker.bootstrap
        self._answering = asyncio.Event()
        worker = worker_service(layout, options.worker, broker.bootstrap, options.liveness_interval_s)
        self._broker = SupervisedChild(broker_service(layout, broker, self._answering), options.tell)
        self._worker = SupervisedChild(worker, options.tell)

    async def run(self) -> None:
        try:
            await _together(self._broker.keep(), self._keep_worker(), self._announce(), self._tend_logs())
        finally:
            # The worker commits its offsets and leaves its group while the broker still lives.
            await self._worker.stop()
            await self._broker.stop()

    async def _keep_worker(self) -> None:
        await self._answering.wait()
        await self._worker.keep()

    async def _announce(self) -> None:
        await self._answering.wait()
        told = time.monotonic()
        while not await self._is_ready():
            if time.monotonic() - told > STARTING_NOTICE_INTERVAL_S:
                told = time.monotonic()
                self._options.tell("the broker answers, the worker is still starting")
            await asyncio.sleep(READINESS_INTERVAL_S)
        self._broker.proven = self._worker.proven = True
        print(f"ready bootstrap={self._bootstrap}", flush=True)

    async def _is_ready(self) -> bool:
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(READINESS_TIMEOUT_S):
                return await self._options.probe(self._bootstrap)
        return False

    async def _tend_logs(self) -> None:
        while True:
            for name in ("broker", "worker"):
                rotate_log(self._layout.log(name))
            await asyncio.sleep(LOG_ROTATION_INTERVAL_S)


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    """Run all; the first that fails ends the others, and its error is raised."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
