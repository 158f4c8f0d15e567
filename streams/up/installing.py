"""Install Kafka once for each user of a machine: fetch its jars and record its first start.

The record is an archive of loaded classes (JEP 514): it makes every later start 2 s shorter and 20 MB smaller, and a
first start 9 s longer. Guaranteed: an archive that exists is complete. It is optional.
"""

import asyncio
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from streams.up import jars
from streams.up.broker import KafkaBroker, KafkaInstallation
from streams.up.console import PrintLine
from streams.up.layout import Layout
from streams.up.ports import free_port

ABANDONED_AFTER_S = 3600.0
"""An incomplete file without writes for this long was left by a killed process."""

RECORDING_TIMEOUT_S = 60.0
"""How long a recorded broker may take to end. It then writes its archive, on a fast machine in 6 s."""


async def install_kafka(cache: Path, layout: Layout, print_line: PrintLine) -> KafkaInstallation:
    """Install Kafka if needed. The recorded start uses `layout`, exclusively the caller's. Raises Unavailable."""
    cache.mkdir(parents=True, exist_ok=True)
    for path in (*cache.glob("*incomplete*"), *cache.glob("kafka-*/*incomplete*")):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > ABANDONED_AFTER_S:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    installation = KafkaInstallation(tuple(await _jars(cache, print_line)))
    if not installation.archive.exists():
        print_line("recording a first start of Kafka, which makes later starts quick")
        await _record(installation, layout)
    # Java writes an empty archive where it can't record one.
    is_usable = installation.archive.exists() and installation.archive.stat().st_size > 0
    return installation.quick() if is_usable else installation


async def _jars(cache: Path, print_line: PrintLine) -> list[Path]:
    locked = jars.locked_jars()
    installed = jars.installed_class_path(locked, cache)
    if installed is not None:
        return installed
    download = jars.Download(locked, cache, print_line)
    try:
        return await asyncio.to_thread(download.run)
    except asyncio.CancelledError:
        download.cancel()
        raise


async def _record(installation: KafkaInstallation, layout: Layout) -> None:
    """Run a broker until it answers, and stop it: Java then writes the archive, an empty one if it can't."""
    unfinished = installation.archive.with_suffix(f".{os.getpid()}.incomplete")
    broker = KafkaBroker(layout, free_port(), installation.recording(unfinished))
    await broker.format()
    child = await broker.start()
    try:
        answered = await broker.wait_until_answering(child)
        await child.stop(RECORDING_TIMEOUT_S)
    except asyncio.CancelledError:
        await child.stop(0)
        raise
    if answered:
        unfinished.touch()
        unfinished.rename(installation.archive)
