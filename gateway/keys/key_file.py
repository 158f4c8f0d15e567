"""The file of keys: SHA-256 digests, each with a principal. A key itself is shown once and stored nowhere.

    {"keys": [{"id": "k1", "sha256": "…", "principal": "app", "user_id": null, "label": "phone app", "expires": null}]}

Guaranteed: replaced atomically, readable by its owner only; changes of several processes are serialized.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Self

from modestream_client.vocabulary import Moment
from pydantic import BaseModel, Field

from schemas.scopes import UserName

KEY_PREFIX = "ms_"
"""Prefix by which secret scanners recognize a key in a repository."""

KEY_BYTES = 32
"""Random bytes of a key: too many to guess, so a fast digest suffices."""


class Key(BaseModel, frozen=True, extra="forbid"):
    """One key. Without `user_id` it may name any user that the grants of its principal admit."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}\z")]
    principal: Annotated[str, Field(min_length=1, max_length=256)]
    user_id: UserName | None = None
    label: str = ""
    expires: Moment | None = None

    def has_expired(self, now: datetime) -> bool:
        """True from its date on."""
        return self.expires is not None and now >= self.expires


class KeyFile(BaseModel, frozen=True, extra="forbid"):
    """All keys of a deployment."""

    keys: tuple[Key, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; a missing one has no keys. Raises OSError, or ValueError with the reason."""
        if not path.exists():
            return cls()
        return cls.model_validate_json(path.read_bytes())

    def write(self, path: Path) -> None:
        """Replace the file atomically. Raises OSError."""
        new = path.with_name(f"{path.name}.new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(self.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    @classmethod
    def change(cls, path: Path, change: Callable[[Self], Self]) -> None:
        """Apply `change` to the file. Raises OSError, ValueError, and the exceptions of `change`."""
        # A file of its own: the lock of the file itself would go with it when it is replaced.
        with os.fdopen(os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            change(cls.read(path)).write(path)

    def with_key(self, key: Key) -> Self:
        """Add a key."""
        return self.model_copy(update={"keys": (*self.keys, key)})

    def without(self, key_id: str) -> Self:
        """Remove the key of that id."""
        return self.model_copy(update={"keys": tuple(key for key in self.keys if key.id != key_id)})


def new_key() -> str:
    """Return a new random key."""
    return KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)


def digest_of(key: str) -> str:
    """Return the digest of a key in the file."""
    return hashlib.sha256(key.encode()).hexdigest()
