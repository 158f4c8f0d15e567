"""The caller of a request, by its key: looked up by digest in a file that is read again when it changes.

A broken file keeps the keys that were read before, a file that is gone keeps none, and `is_sound` tells `/ready`.
"""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from starlette.datastructures import Headers

from gateway.keys.key_file import Key, KeyFile, digest_of
from gateway.service.buckets import Buckets
from gateway.service.calls import Caller
from gateway.service.failures import Refused
from schemas.state.policies import Policy

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
"""Interval of looks at the file: a revoked key is refused within two seconds."""

MAX_KEY_CHARS = 256
"""Characters of a key that are read; our keys are shorter."""

SCHEMES = ("bearer", "token")
"""Schemes of a key in `Authorization`; mem0's client library sends `Token`."""


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
        """False while the file is missing or can't be read."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a key. Raises Refused: `unauthenticated`, or `too_many_requests` after many failures."""
        self._look()
        secret = _key_in(headers)
        key = None if secret is None else self._keys.get(digest_of(secret))
        if key is not None and not key.has_expired(datetime.now(UTC)):
            return caller_for(key.id, key.principal, key.user_id, self._policy)
        if secret is not None:
            self._failures.count(address, "unknown keys")
        raise Refused("unauthenticated", "send a key of this gateway as `Authorization: Bearer ms_…`")

    def caller_by_id(self, key_id: str) -> Caller | None:
        """Return the caller of a key by its id; None if it was revoked or has expired."""
        self._look()
        key = next((key for key in self._keys.values() if key.id == key_id), None)
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
            # Without the exception: its text may contain a secret.
            log.error("the file of keys can't be read: the keys before it stay")  # noqa: TRY400
            self.is_sound = False

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            if _stamp(self._path) != self._stamp:
                self.reload()


def caller_for(name: str, principal: str, own_user: str | None, policy: Policy | None) -> Caller:
    """Return the caller with the grants of its principal; a principal that the policy does not name has none."""
    grants = None if policy is None else policy.principals.get(principal, ())
    return Caller(name, principal, own_user, grants)


class FailedLogins:
    """Limits failed attempts by address."""

    def __init__(self, per_minute: float) -> None:
        self._buckets = Buckets(per_minute / 60, per_minute)

    def count(self, address: str, credentials: str) -> None:
        """Count a failure of these credentials. Raises Refused, `too_many_requests`, above the limit."""
        wait_s = self._buckets.take(address)
        if wait_s > 0:
            message = f"too many {credentials} from this address"
            raise Refused("too_many_requests", message, retry_after_s=round(wait_s) or 1)


def _by_digest(file: KeyFile) -> Mapping[str, Key]:
    return {key.sha256: key for key in file.keys}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _key_in(headers: Headers) -> str | None:
    """Return the key of a request, if it has one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    key = token.strip() if scheme.lower() in SCHEMES else headers.get("x-api-key", "").strip()
    return key[:MAX_KEY_CHARS] or None
