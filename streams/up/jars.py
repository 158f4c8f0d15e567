"""Apache Kafka's jars: fetched once for all data directories of a user, verified against `kafka.lock`.

The lock has one `group:artifact:version sha256 bytes` a line, in the order of the class path. Guaranteed: a directory
of jars is complete and has the locked hashes, because it gets its name only then; an interrupted download leaves
nothing that a later start could mistake for it.
"""

import hashlib
import os
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tenacity import Retrying, stop_after_attempt, stop_when_event_set, wait_exponential
from tenacity.nap import sleep_using_event

from schemas.failures import Unavailable
from streams.up.console import DownloadProgress, PrintLine

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
    """Read the lock."""
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
            self._fetch_all(staging)
            return self._publish(staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _fetch_all(self, staging: Path) -> None:
        (staging / "jars").mkdir()
        with ThreadPoolExecutor(max_workers=4) as pool:
            try:
                for done in [pool.submit(self._fetch, jar, staging) for jar in self._jars]:
                    done.result()
            except BaseException:
                self.cancel()
                pool.shutdown(cancel_futures=True)
                raise

    def _publish(self, staging: Path) -> list[Path]:
        home = jars_dir(self._jars, self._cache)
        if installed_class_path(self._jars, self._cache) is None:
            shutil.rmtree(home, ignore_errors=True)
            (staging / "jars").rename(home)
        return [home / jar.name for jar in self._jars]

    def _fetch(self, jar: Jar, staging: Path) -> None:
        attempts = Retrying(
            stop=stop_after_attempt(MAX_DOWNLOAD_ATTEMPTS) | stop_when_event_set(self._cancelled),
            wait=wait_exponential(multiplier=INITIAL_DOWNLOAD_BACKOFF_S),
            sleep=sleep_using_event(self._cancelled),
            reraise=True,
        )
        try:
            # Each attempt gets a repository of its own: what an earlier one has left there may be damaged.
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
            raise ValueError("its hash is not the locked one")
        return Path(path)
