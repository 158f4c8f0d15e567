"""Install Kafka once for each user of a machine: fetch its jars, verify them by `kafka.lock`, record a first start.

The lock has one `group:artifact:version sha256 bytes` a line, in the order of the class path. The record is an archive
of loaded classes (JEP 514): every later start is 2 s shorter and 20 MB smaller, a first one 9 s longer. It is optional.
Guaranteed: an archive that exists is complete; a directory of jars is complete and has the locked hashes,
because it gets its name only then; an interrupted download leaves nothing that a later start could mistake for it.
"""

import asyncio
import hashlib
import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tenacity import Retrying, stop_after_attempt, stop_when_event_set, wait_exponential
from tenacity.nap import sleep_using_event

from schemas.failures import Unavailable
from streams.up.broker import KafkaBroker, KafkaInstallation
from streams.up.console import DownloadProgress, PrintLine
from streams.up.layout import Layout, free_port

LOCK_FILE = Path(__file__).with_name("kafka.lock")
"""The jars of kafka_2.13 4.2.1 as Maven resolves them, and log4j's binding for their slf4j 1.7."""

MAX_DOWNLOAD_ATTEMPTS = 4
"""Attempts per jar: a first start should survive a short failure of the registry."""

INITIAL_DOWNLOAD_BACKOFF_S = 1.0
"""The pause before the second attempt; it doubles for each later one."""

REGISTRY_TIMEOUT_S = 30
"""Read timeout of one request to the registry."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of the lock."""

    coordinate: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """Maven's file name."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


def default_cache_dir() -> Path:
    """Return `$XDG_CACHE_HOME/modestream`, by default below `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modestream"


def locked_jars(lock: Path = LOCK_FILE) -> list[Jar]:
    rows = (line.split() for line in lock.read_text(encoding="utf-8").splitlines() if line)
    return [Jar(coordinate, sha256, int(size)) for coordinate, sha256, size in rows]


def jars_dir(jars: list[Jar], cache: Path) -> Path:
    """Return the directory of exactly these jars: its name has a hash of their contents."""
    contents = "".join(jar.sha256 for jar in jars)
    return cache / f"kafka-{hashlib.sha256(contents.encode()).hexdigest()[:12]}"


def installed_class_path(jars: list[Jar], cache: Path) -> list[Path] | None:
    """Return the class path, or None if a jar is missing."""
    paths = [jars_dir(jars, cache) / jar.name for jar in jars]
    return paths if all(path.is_file() for path in paths) else None


class Download:
    """Fetches jars with `jgo`. Blocking: run it in a thread; `cancel` works from any thread."""

    def __init__(self, jars: list[Jar], cache: Path, print_line: PrintLine, registry: str | None = None) -> None:
        """`registry` is the address of a Maven repository; default: Maven's own."""
        self._registries = {"registry": registry} if registry else None
        self._jars = jars
        self._cache = cache
        self._cancelled = threading.Event()
        self._progress = DownloadProgress("Apache Kafka", sum(jar.size for jar in jars), print_line)

    def cancel(self) -> None:
        """Make `run` raise at its next chunk or file."""
        self._cancelled.set()

    def run(self) -> list[Path]:
        """Fetch and verify, then publish the directory under its name. Return the class path.

        Raises Unavailable if the registry lacks a jar or returns another one than the locked.
        """
        self._cache.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix="kafka-incomplete-", dir=self._cache))
        try:
            (staging / "jars").mkdir()
            with ThreadPoolExecutor(max_workers=4) as pool:
                try:
                    for done in [pool.submit(self._fetch, jar, staging) for jar in self._jars]:
                        done.result()
                except BaseException:
                    self.cancel()
                    pool.shutdown(cancel_futures=True)
                    raise
            home = jars_dir(self._jars, self._cache)
            if installed_class_path(self._jars, self._cache) is None:
                shutil.rmtree(home, ignore_errors=True)
                (staging / "jars").rename(home)
            return [home / jar.name for jar in self._jars]
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _fetch(self, jar: Jar, staging: Path) -> None:
        attempts = Retrying(
            stop=stop_after_attempt(MAX_DOWNLOAD_ATTEMPTS) | stop_when_event_set(self._cancelled),
            wait=wait_exponential(multiplier=INITIAL_DOWNLOAD_BACKOFF_S),
            sleep=sleep_using_event(self._cancelled),
            reraise=True,
        )
        try:
            # Each attempt gets a separate repository: files of an earlier one may be damaged.
            path = attempts(lambda: self._attempt(jar, Path(tempfile.mkdtemp(dir=staging))))
        except Exception as error:
            raise Unavailable(f"{jar.coordinate} can't be fetched: {error}") from error
        path.rename(staging / "jars" / jar.name)

    def _attempt(self, jar: Jar, repository: Path) -> Path:
        # Imported late: it takes 0.4 s, and a start with installed jars does not need it.
        from jgo.maven import MavenContext, PythonResolver

        resolver = PythonResolver(progress_callback=lambda *_: self._progress.counter(self._cancelled))
        context = MavenContext(resolver, repository, remote_repos=self._registries, timeout=REGISTRY_TIMEOUT_S)
        group, artifact, version = jar.coordinate.split(":")
        path = context.project(group, artifact).at_version(version).artifact().resolve()
        if hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
            raise ValueError("its hash differs from the locked one")
        return Path(path)


ABANDONED_AFTER_S = 3600.0
"""An incomplete file without writes for this long was left by a killed process."""

RECORDING_TIMEOUT_S = 60.0
"""Time limit for a recorded broker to end. It then writes its archive, on a fast machine in 6 s."""


async def install_kafka(cache: Path, layout: Layout, print_line: PrintLine) -> KafkaInstallation:
    """Install Kafka if needed. The recorded start uses `layout`, which no other start may use. Raises Unavailable."""
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
    locked = locked_jars()
    installed = installed_class_path(locked, cache)
    if installed is not None:
        return installed
    download = Download(locked, cache, print_line)
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
