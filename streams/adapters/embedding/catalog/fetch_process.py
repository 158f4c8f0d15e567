"""Fetch a model's files: `python -m streams.adapters.embedding.catalog.fetch_process OPTIONS`, a process of a worker.

Standard output has lines of JSON: the progress, `{"bytes", "total"}`, and, if the fetch fails, a last one with `code`
and `message`; the exit status is then 1. Guaranteed: the model's folder appears with all of its files, verified and on
the disk, or not at all; a fetch that was killed goes on where it was; two workers fetch a model once; it ends with its
worker.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from streams.adapters.child_processes import end_with_parent
from streams.adapters.durable_files import fsync_path, write_durably

# The first two are also `TOKENIZER_FILES` of `local_model`, whose import would double the time of the start.
OPTIONAL_FILES = ("tokenizer.json", "tokenizer_config.json", "config.json", "special_tokens_map.json")
"""Files that are fetched where the repository has them."""

PLAN_FILE = ".plan.json"
"""In the folder of a fetch under way: its revision, and its files with their sizes."""

LOOK_INTERVAL_S = 0.3
"""Interval of the progress. Sizes on the disk are read, so that a worker that waits for another one's fetch has it."""

ANSWER_TIMEOUT_S = 10.0

CHUNK_BYTES = 1 << 16
"""Bytes written at a time. With the client's own 10 MB a slow network shows nothing for long, and a kill loses all."""

MIN_FREE_BYTES = 256 << 20
"""Bytes of the disk that a fetch leaves free: tables, words and vectors lie on it, too."""

SLACK_BYTES = 1 << 20
"""Room for the notes of the client about its files."""

ABANDONED_S = 86_400.0
"""Age at which the folder of an unfinished fetch is removed: its mode was deleted, or is unused."""


class FetchError(Exception):
    """The reason why a model can't be fetched, with the remedy; `code` for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Fetch:
    """Options of one fetch. `files` must be there; a limit of 0 limits nothing.

    `folder` is that of the model, next to those of the other fetched models.
    """

    hub: str
    files: Sequence[str]
    folder: Path
    max_model_bytes: int = 0
    max_models: int = 0
    max_total_bytes: int = 0

    @property
    def under_way(self) -> Path:
        """The folder of the files before all of them are there."""
        return self.folder.with_name(f".{self.folder.name}.fetching")

    def run(self) -> None:
        """Fetch the model unless it is there. Raises FetchError, OSError and the client's errors."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder.with_name(f".{self.folder.name}.lock")):
            if self.folder.is_dir():  # Another worker has fetched it meanwhile.
                return
            info = HfApi().model_info(self.hub, files_metadata=True, timeout=ANSWER_TIMEOUT_S)
            siblings = {sibling.rfilename: sibling for sibling in info.siblings or ()}
            if absent := [name for name in self.files if name not in siblings]:
                raise FetchError("not_found", f"{self.hub} has no {', '.join(absent)}")
            names = [name for name in dict.fromkeys((*self.files, *OPTIONAL_FILES)) if name in siblings]
            sizes = {name: siblings[name].size or 0 for name in names}
            self._admit(str(info.sha), sizes)
            try:
                for name in names:
                    hf_hub_download(self.hub, name, revision=info.sha, local_dir=self.under_way)
                    large = siblings[name].lfs
                    self._verify(name, sizes[name], None if large is None else large.sha256)
            except OSError as problem:
                # The rest of the disk belongs to all users.
                if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                    shutil.rmtree(self.under_way, ignore_errors=True)
                raise
            self._publish(names)

    def _admit(self, revision: str, sizes: Mapping[str, int]) -> None:
        """Note the plan, which reserves its bytes, if it is within the limits."""
        total = sum(sizes.values())
        size = f"{self.hub} has {_megabytes(total)}"
        if self.max_model_bytes and total > self.max_model_bytes:
            limit = f"more than {_megabytes(self.max_model_bytes)} (FETCH_MAX_MODEL_MB)"
            raise FetchError("too_large", f"{size}, {limit}: choose a smaller model, or raise the setting")
        with _locked(self.folder.with_name(".admission.lock")):
            others = [folder for folder in self._models() if folder not in (self.folder, self.under_way)]
            if self.max_models and len(others) >= self.max_models:
                limit = f"{len(others)} models are fetched, the limit (FETCH_MAX_MODELS)"
                raise FetchError("too_many", f"{limit}: remove the folder of an unused one, or raise the setting")
            planned = sum(max(planned_bytes(folder), _bytes_of(folder)) for folder in others)
            if self.max_total_bytes and planned + total > self.max_total_bytes:
                limit = f"with the other fetched models more than {_megabytes(self.max_total_bytes)}"
                advice = "remove the folder of an unused one, or raise the setting"
                raise FetchError("too_many", f"{size}, {limit} (FETCH_MAX_TOTAL_MB): {advice}")
            due = total - min(total, _bytes_of(self.under_way))
            if due + MIN_FREE_BYTES > (free := shutil.disk_usage(self.folder.parent).free):
                left = f"the disk has {_megabytes(free)} left, of which {_megabytes(MIN_FREE_BYTES)} stay free"
                raise FetchError("disk_full", f"{size}, and {left}: make room on the disk of MODEL_DIR")
            plan = {"revision": revision, "files": dict(sizes)}
            if _plan_of(self.under_way) != plan:
                shutil.rmtree(self.under_way, ignore_errors=True)
                self.under_way.mkdir()
                write_durably(self.under_way / PLAN_FILE, json.dumps(plan))

    def _models(self) -> list[Path]:
        """Return the folders of fetched models and of fetches under way; remove abandoned ones."""
        folders = []
        for folder in self.folder.parent.iterdir():
            if not folder.is_dir():
                continue
            plan = folder / PLAN_FILE
            is_old = plan.exists() and folder != self.under_way and time.time() - plan.stat().st_mtime > ABANDONED_S
            if is_old:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                folders.append(folder)
        return folders

    def _verify(self, name: str, size: int, sha256: str | None) -> None:
        """Compare a file with the hub's list; remove another one. Small files are listed without a SHA-256."""
        path = self.under_way / name
        with path.open("rb") as file:
            is_same = path.stat().st_size == size and sha256 in (None, hashlib.file_digest(file, "sha256").hexdigest())
        if not is_same:
            path.unlink()
            raise FetchError("damaged", f"{name} of {self.hub} arrived with other bytes than listed: it is tried again")

    def _publish(self, names: Sequence[str]) -> None:
        """Make the whole folder visible under its name, in one step that survives a power cut."""
        shutil.rmtree(self.under_way / ".cache", ignore_errors=True)
        (self.under_way / PLAN_FILE).unlink()
        for name in names:
            fsync_path(self.under_way / name)
        for folder in {(self.under_way / name).parent for name in names}:
            fsync_path(folder)
        self.under_way.rename(self.folder)
        fsync_path(self.folder.parent)


def _plan_of(folder: Path) -> dict[str, Any] | None:
    try:
        plan: dict[str, Any] = json.loads((folder / PLAN_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return plan


def planned_bytes(under_way: Path) -> int:
    """Return the bytes that a fetch under way will have; 0 before they are known."""
    plan = _plan_of(under_way)
    return sum(plan["files"].values()) if plan else 0


def _bytes_of(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).stat().st_size
            except FileNotFoundError:  # Renamed meanwhile.
                continue
    return total


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait for the lock of a file; it is free when its process has ended."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def failure_of(problem: Exception, hub: str, by_hand: str) -> FetchError:
    """Return the code and the advice for an error of the client or of the disk; `by_hand` is the other way."""
    if isinstance(problem, FetchError):
        return problem
    match problem:
        # In this order: they derive from each other.
        case GatedRepoError():
            code, reason = "not_allowed", f"{hub} asks for a login: accept its licence and set HF_TOKEN, or {by_hand}"
        case RepositoryNotFoundError():
            code, reason = "not_found", f"the hub has no {hub}, or wants a login (HF_TOKEN) for it; or {by_hand}"
        case OfflineModeIsEnabled():
            code, reason = "offline", f"HF_HUB_OFFLINE forbids the download: allow it, or {by_hand}"
        case LocalEntryNotFoundError():
            code, reason = "unavailable", f"the hub can't be reached, it is tried again; or {by_hand}"
        case EntryNotFoundError():
            code, reason = "not_found", f"a file of {hub} is gone: {problem}; or {by_hand}"
        case HfHubHTTPError():
            status = problem.response.status_code
            code = {401: "not_allowed", 403: "not_allowed", 404: "not_found"}.get(status, "unavailable")
            reason = f"the hub answers {status} for {hub}, it is tried again; or {by_hand}"
        case OSError() if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            code, reason = "disk_full", "the disk is full: make room on the disk of MODEL_DIR; it is tried again"
        case OSError() if problem.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            code, reason = "not_writable", f"MODEL_DIR can't be written: {problem.strerror}; or {by_hand}"
        case _:
            code, reason = "unavailable", f"{type(problem).__name__}: {problem}; it is tried again; or {by_hand}"
    return FetchError(code, reason)


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    end_with_parent()
    by_hand = f"put its files into {options.pop('by_hand')}"
    constants.DOWNLOAD_CHUNK_SIZE = CHUNK_BYTES
    fetch = Fetch(**options | {"folder": Path(options["folder"])})
    try:
        threading.Thread(target=_show_progress, args=(fetch,), daemon=True).start()
        fetch.run()
    except Exception as problem:
        failure = failure_of(problem, fetch.hub, by_hand)
        _print({"code": failure.code, "message": str(failure)})
        sys.exit(1)


def _show_progress(fetch: Fetch) -> None:
    """Print the bytes on the disk while they change; end the process if they are more than planned."""
    shown = -1
    while True:
        total, present = planned_bytes(fetch.under_way), _bytes_of(fetch.under_way)
        if total and present > total + SLACK_BYTES:
            message = f"{fetch.hub} sends more bytes than it lists"
            _print({"code": "too_large", "message": f"{message}: choose another model"})
            shutil.rmtree(fetch.under_way, ignore_errors=True)
            os._exit(1)
        if total and present != shown:
            shown = present
            _print({"bytes": min(present, total), "total": total})
        time.sleep(LOOK_INTERVAL_S)


def _print(line: Mapping[str, Any]) -> None:
    # In one piece: two threads print.
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
