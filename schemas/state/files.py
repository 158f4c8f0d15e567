"""The bytes of files: the memories that have them, and the keys under which they lie. Pure.

A file lies at `<digest of the boundary>/<sha256>/<memory id>`, the memory being the turn that brought it: each upload
writes a separate key, so that none can meet the removal of another one. Files are apart by boundary, so that no user
learns what others have.
"""

import hashlib
import re

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
    """Return the beginning of the keys of one file."""
    return f"{boundary_prefix(boundary)}{sha256}/"


def file_key(boundary: str, sha256: str, memory_id: str) -> str:
    """Return the key of the bytes that one turn has brought."""
    return file_prefix(boundary, sha256) + memory_id


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
