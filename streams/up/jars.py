"""Apache Kafka as a set of jars: fetched once for every data directory of this user, checked against `kafka.lock`.

Enters: the lock beside this file, one `group:artifact:version sha256 bytes` a line. Leaves: a class path, in the
order of the lock. Guaranteed: a directory of jars that exists is complete and has the locked hashes, because it gets
its name only then; a download that is interrupted at any moment leaves nothing that a later start could mistake.
"""

import hashlib
import os
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from schemas.failures import Unavailable
from streams.up.console import Tell
from streams.up.progress import DownloadProgress

LOCK_FILE = Path(__file__).with_name("kafka.lock")
"""What is fetched: the jars of kafka_2.13 4.2.1 as Maven resolves them, and log4j's binding for their slf4j 1.7."""

MAX_DOWNLOAD_ATTEMPTS = 4
"""How often a jar is asked for: registries hiccup, and a first start should survive that."""

INITIAL_DOWNLOAD_BACKOFF_S = 1.0
"""The pause before the second attempt; each later one is twice as long."""

REGISTRY_TIMEOUT_S = 30
"""How long the registry may be silent within one request."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of the lock."""

    coordinate: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """The file name that Maven gives it."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


def default_cache_dir() -> Path:
    """The directory for what can be fetched again: `$XDG_CACHE_HOME/modestream`, by default below `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modestream"


def locked_jars(lock: Path = LOCK_FILE) -> list[Jar]:
    """Read the lock, in its order."""
    rows = (line.split() for line in lock.read_text(encoding="utf-8").splitlines() if line)
    return [Jar(coordinate, sha256, int(size)) for coordinate, sha256, size in rows]


def jars_dir(jars: list[Jar], cache: Path) -> Path:
    """The directory of exactly these jars; other contents have another name."""
    contents = "".join(jar.sha256 for jar in jars)
    return cache / f"kafka-{hashlib.sha256(contents.encode()).hexdigest()[:12]}"


def installed_class_path(jars: list[Jar], cache: Path) -> list[Path] | None:
    """The class path, if the jars are here."""
    paths = [jars_dir(jars, cache) / jar.name for jar in jars]
    return paths if all(path.is_file() for path in paths) else None


class Download:
    """Fetches jars with `jgo`. Blocks, so it runs in a thread; `cancel` makes it raise soon, from any thread."""

    def __init__(self, jars: list[Jar], cache: Path, tell: Tell, registry: str | None = None) -> None:
        """`registry` is the address of a Maven repository; Maven's own by default."""
        self._registries = {"registry": registry} if registry else None
        self._jars = jars
        self._cache = cache
        self._cancelled = threading.Event()
        self._arrived = DownloadProgress("Apache Kafka", sum(jar.size for jar in jars), tell)

    def cancel(self) -> None:
        """Make `run` raise at its next chunk or file."""
        self._cancelled.set()

    def run(self) -> list[Path]:
        """Fetch, check, and only then give the directory its name. Returns the class path.

        Raises Unavailable when the registry does not give a jar, or gives another one than was locked.
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
        for attempt in range(MAX_DOWNLOAD_ATTEMPTS):
            if attempt and self._cancelled.wait(INITIAL_DOWNLOAD_BACKOFF_S * 2 ** (attempt - 1)):
                break
            try:
                self._attempt(jar, Path(tempfile.mkdtemp(dir=staging))).rename(staging / "jars" / jar.name)
            except Exception as error:
                if attempt == MAX_DOWNLOAD_ATTEMPTS - 1 or self._cancelled.is_set():
                    reason = f"{jar.coordinate} can't be fetched: {error}"
                    raise Unavailable(reason) from error
            else:
                return
        reason = "the download was cancelled"
        raise Unavailable(reason)

    def _attempt(self, jar: Jar, repository: Path) -> Path:
        # Imported where it is needed: it takes 0.4 s, and a start that finds its jars does not need it.
        from jgo.maven import MavenContext, PythonResolver

        resolver = PythonResolver(progress_callback=lambda *_: self._arrived.counter(self._cancelled))
        context = MavenContext(resolver, repository, remote_repos=self._registries, timeout=REGISTRY_TIMEOUT_S)
        group, artifact, version = jar.coordinate.split(":")
        path = context.project(group, artifact).at_version(version).artifact().resolve()
        if hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
            reason = "its hash is not the locked one"
            raise ValueError(reason)
        return Path(path)
