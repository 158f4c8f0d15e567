"""Files: their texts as they are read, the memories that have them, and the keys of their bytes. Pure.

A file lies at `<digest of the boundary>/<sha256>/<memory id>.<upload>`, the memory being the turn that brings it. Each
upload writes a key that no other one writes, so that its bytes never meet the removal of another one's. Files are apart
by boundary, so that no user learns what others have.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

DEFAULT_MAX_FILE_BYTES = 64 * 1024 * 1024

UPLOADED = re.compile(r"file:([0-9a-f]{64})")
"""The URI of uploaded bytes."""

SHA256 = re.compile(r"[0-9a-f]{64}")


def upload_uri(sha256: str) -> str:
    return f"file:{sha256}"


def uploaded_sha256(uri: str) -> str | None:
    """Return the hash of uploaded bytes; None for any other URI."""
    match = UPLOADED.fullmatch(uri)
    return match and match[1]


def boundary_prefix(boundary: str) -> str:
    """Return the beginning of the keys of a boundary's files."""
    return hashlib.sha256(b"files/" + boundary.encode()).hexdigest()[:32] + "/"


def file_prefix(boundary: str, sha256: str) -> str:
    return f"{boundary_prefix(boundary)}{sha256}/"


def file_key(boundary: str, sha256: str, memory_id: str) -> str:
    """Return the beginning of the keys of the bytes that one turn has brought; it is a key as well."""
    return file_prefix(boundary, sha256) + memory_id


def upload_key(boundary: str, sha256: str, memory_id: str, upload: str) -> str:
    """Return the key of the bytes of one upload of a turn."""
    return f"{file_key(boundary, sha256, memory_id)}.{upload}"


def without_upload(key: str) -> str:
    """Return the `file_key` of an `upload_key`, and of itself."""
    return key.partition(".")[0]


class FileHolders(BaseModel, frozen=True):
    """The memories that have a file, and `former` ones that had it: what they have brought goes with the last."""

    memories: tuple[str, ...] = ()
    former: tuple[str, ...] = ()


class FileStatuses(BaseModel, frozen=True):
    """How many files of one turn are read, fail, or are still to be read."""

    pending: int = 0
    ready: int = 0
    failed: int = 0

    def plus(self, other: "FileStatuses") -> "FileStatuses":
        """Add the counts of another turn."""
        return FileStatuses(**{name: getattr(self, name) + getattr(other, name) for name in FileStatuses.model_fields})


@dataclass(frozen=True, slots=True)
class FileToRead:
    """A file of a turn, and what the turn says of it. The media type may be wrong; the name may be anything."""

    path: Path
    uri: str
    media_type: str
    name: str


ReadFailure = Literal["no_reader", "unreadable", "too_large", "no_model", "unavailable"]
"""Why a file has no text: no reader of its type; broken, or protected; beyond a limit; no profile that hears or sees;
its bytes, or a model that was to read them, can't be had now."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A natural part of a file's text: code points from `start` up to, not including, `end`.

    `page` counts pages, slides and sheets from 1; `start_s` and `end_s` are seconds of sound.
    """

    start: int
    end: int
    page: int | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text. Its segments are in order and do not overlap; each is short enough to be embedded whole."""

    text: str
    reader: str
    segments: tuple[Segment, ...] = ()
    pages: int | None = None
    seconds: float | None = None


class ReadFailed(Exception):
    """A file can't be read; the message is a sentence for people. Only `unavailable` may pass by itself."""

    def __init__(self, code: ReadFailure, message: str) -> None:
        super().__init__(message)
        self.code: ReadFailure = code
