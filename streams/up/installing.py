"""What happens once for each user of a machine: Kafka is fetched, and its first start is recorded.

The record is an archive of loaded classes (JEP 514): it makes every later start 2 s shorter and 20 MB smaller, and a
first start 9 s longer. Guaranteed: an archive that exists is whole, and nothing depends on there being one.
"""

import asyncio
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from streams.up import jars
from streams.up.broker import KafkaBroker
from streams.up.console import Tell
from streams.up.installation import KafkaInstallation
from streams.up.layout import Layout
from streams.up.ports import free_port

ABANDONED_AFTER_S = 3600.0
"""An unfinished part that nobody has written to for so long was left by a process that was killed."""

RECORDING_TIMEOUT_S = 60.0
"""How long a recorded broker may take to end: it writes its archive then, on a quick machine in 6 s."""


async def install_kafka(cache: Path, layout: Layout, tell: Tell) -> KafkaInstallation:
    """Kafka, ready to run. The recorded start uses `layout`, which must be the caller's alone. Raises Unavailable."""
    cache.mkdir(parents=True, exist_ok=True)
    _tidy(cache)
    installation = KafkaInstallation(tuple(await _jars(cache, tell)))
    if not installation.archive.exists():
        tell("recording a start of Kafka, once, which makes the later ones quick")
        await _record(installation, layout)
    return installation.quick() if _is_usable(installation.archive) else installation


async def _jars(cache: Path, tell: Tell) -> list[Path]:
    wanted = jars.locked_jars()
    here = jars.installed_class_path(wanted, cache)
    if here is not None:
        return here
    download = jars.Download(wanted, cache, tell)
    try:
        return await asyncio.to_thread(download.run)
    except asyncio.CancelledError:
        download.cancel()
        raise


async def _record(installation: KafkaInstallation, layout: Layout) -> None:
    """Run a broker until it answers, and end it: Java then writes the archive. An empty one means that it can't."""
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


def _is_usable(archive: Path) -> bool:
    return archive.exists() and archive.stat().st_size > 0


def _tidy(cache: Path) -> None:
    """Take away what a killed process left unfinished."""
    for path in (*cache.glob("*incomplete*"), *cache.glob("kafka-*/*incomplete*")):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > ABANDONED_AFTER_S:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
