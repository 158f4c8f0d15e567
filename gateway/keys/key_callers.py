"""The caller of a request, by its key: looked up by digest in a file that is read again when it changes.

A broken file keeps the keys that were read before, a file that is gone keeps none, and `is_sound` tells `/ready`.
"""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from starlette.datastructures import Headers

from gateway.keys.callers import FailedLogins, caller_for
from gateway.keys.key_file import Key, KeyFile, digest_of
from gateway.service.calls import Caller
from gateway.service.failures import Refused
from schemas.state.policies import Policy

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
"""Seconds between two looks at the file: a revoked key is refused within two."""

MAX_KEY_CHARS = 256
"""Characters of a key that is looked at: others are none of ours."""


SCHEMES = ("bearer", "token")
"""Schemes of a key in `Authorization`; mem0's client library says `Token`."""


class KeyCallers:
    """Implements `gateway.http.identity.Callers` over a file of keys and a policy."""

    def __init__(self, path: Path, policy: Policy | None, failed_logins_per_minute: float) -> None:
        """Read the file. Raises OSError, or ValueError with the reason."""
        self._path = path
        self._policy = policy
        self._failures = FailedLogins(failed_logins_per_minute)
        self._keys = _by_digest(KeyFile.read(path))
        self._stamp = _stamp(path)
        self._looked_at = time.monotonic()
        self.is_sound = True
        """False while the file can't be read, or is gone."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a key. Raises Refused: `unauthenticated`, or `too_many_requests` after many failures."""
        self._look()
        key = self._keys.get(digest_of(given)) if (given := _key_in(headers)) is not None else None
        if key is not None and not key.has_expired(datetime.now(UTC)):
            return caller_for(key.id, key.principal, key.user_id, self._policy)
        if given is not None:
            self._failures.count(address, "unknown keys")
        raise Refused("unauthenticated", "send a key of this gateway as `Authorization: Bearer ms_…`")

    def caller_by_id(self, key_id: str) -> Caller | None:
        """Return the caller of the key of that id; None if it was revoked or has expired."""
        self._look()
        key = next((one for one in self._keys.values() if one.id == key_id), None)
        if key is None or key.has_expired(datetime.now(UTC)):
            return None
        return caller_for(key.id, key.principal, key.user_id, self._policy)

    def reload(self) -> None:
        """Read the file again, whether it changed or not."""
        self._stamp = _stamp(self._path)
        try:
            self._keys = _by_digest(KeyFile.read(self._path))
            self.is_sound = self._stamp is not None
            if not self.is_sound:
                log.error("the file of keys is gone: no key is valid until it is there again")
        except (OSError, ValueError):
            # Its text may hold what was meant to be secret.
            log.error("the file of keys can't be read: the keys before it stay")  # noqa: TRY400
            self.is_sound = False

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            if _stamp(self._path) != self._stamp:
                self.reload()


def _by_digest(file: KeyFile) -> Mapping[str, Key]:
    return {key.sha256: key for key in file.keys}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _key_in(headers: Headers) -> str | None:
    """Return the key that was sent; None for none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() in SCHEMES else headers.get("x-api-key", "").strip()
    return given[:MAX_KEY_CHARS] or None
