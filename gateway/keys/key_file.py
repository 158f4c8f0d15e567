"""The file of keys: SHA-256 digests, each with a principal; and `python -m streams key add|list|revoke` over it.

    {"keys": [{"id": "k1", "sha256": "…", "principal": "app", "user_id": null, "label": "phone app", "expires": null}]}

A key itself is shown once and stored nowhere. Guaranteed: the file is replaced atomically, readable by its owner only;
changes of several processes are serialized.
"""

import argparse
import fcntl
import hashlib
import os
import secrets
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.vocabulary import Moment
from pydantic import BaseModel, Field, ValidationError

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
        return self.expires is not None and now >= self.expires


class KeyFile(BaseModel, frozen=True, extra="forbid"):
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
        # A separate file: replacing the file of keys would drop a lock on it.
        with os.fdopen(os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            change(cls.read(path)).write(path)

    def with_key(self, key: Key) -> Self:
        return self.model_copy(update={"keys": (*self.keys, key)})

    def without(self, key_id: str) -> Self:
        return self.model_copy(update={"keys": tuple(key for key in self.keys if key.id != key_id)})


def new_key() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def make_first_key(path: Path) -> str | None:
    """Make an administrator's key if the file has no key yet, and return it. Raises OSError, or ValueError."""
    if KeyFile.read(path).keys:
        return None
    secret = new_key()
    first = Key(id=secrets.token_hex(4), sha256=digest_of(secret), principal="admin", label="made at the first start")
    # Another start may have made one since.
    KeyFile.change(path, lambda keys: keys if keys.keys else keys.with_key(first))
    return secret if first in KeyFile.read(path).keys else None


def add_key_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their options; `options.act` is then the function to run with the file."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    add = actions.add_parser("add", help="make a key and print it, once")
    add.add_argument("--principal", required=True, help="whose grants it has, by the policy file of AUTHORIZATION")
    add.add_argument("--user", help="the only user that it may name, and the one of /mcp")
    add.add_argument("--label", default="", help="the key's purpose")
    add.add_argument("--expires", help="until when it is valid: ISO-8601 with a zone")
    add.set_defaults(act=_add)
    actions.add_parser("list", help="list keys, without the keys themselves").set_defaults(act=_list)
    revoke = actions.add_parser("revoke", help="remove a key by its id")
    revoke.add_argument("id")
    revoke.set_defaults(act=_revoke)


def run_key_command(
    options: argparse.Namespace,
    path: Path | None,
    boundary_fields: BoundaryFields = USER_BOUNDARY,
    *,
    has_policy: bool = True,
) -> int:
    """Run a command on the file of keys; return the exit code. Without a policy, `list` names the administrators."""
    if path is None:
        sys.stderr.write("set MODESTREAM_GATEWAY_KEYS to the file of keys\n")
        return os.EX_CONFIG
    try:
        if getattr(options, "user", None):
            boundary_fields.values(options.user)
        code: int = options.act(options, path)
        if options.act is _list and not has_policy:
            administrators = ", ".join(key.id for key in KeyFile.read(path).keys if key.user_id is None)
            if administrators:
                sys.stderr.write(
                    f"administrators, as MODESTREAM_AUTHORIZATION is not set and no user is: {administrators}\n"
                )
    except ValidationError as problem:
        first = problem.errors(include_input=False, include_url=False)[0]
        sys.stderr.write(f"{'.'.join(map(str, first['loc']))}: {first['msg']}\n")
        return 1
    except BrokenPipeError:
        # An OSError, but not of the file: the reader of the output has ended.
        raise
    except (OSError, ValueError) as problem:
        sys.stderr.write(f"{path}: {problem}\n")
        return 1
    return code


def _add(options: argparse.Namespace, path: Path) -> int:
    secret = new_key()
    key = Key(
        id=secrets.token_hex(4),
        sha256=digest_of(secret),
        principal=options.principal,
        user_id=options.user,
        label=options.label,
        expires=options.expires,
    )
    KeyFile.change(path, lambda keys: keys.with_key(key))
    sys.stderr.write(f"key {key.id} of {key.principal}; it is shown this once:\n")
    sys.stdout.write(f"{secret}\n")
    return 0


def _list(_: argparse.Namespace, path: Path) -> int:
    now = datetime.now(UTC)
    for key in KeyFile.read(path).keys:
        expires = "" if key.expires is None else f"{'expired' if key.has_expired(now) else 'until'} {key.expires}"
        sys.stdout.write("\t".join((key.id, key.principal, key.user_id or "*", expires, key.label)).rstrip() + "\n")
    return 0


def _revoke(options: argparse.Namespace, path: Path) -> int:
    if all(key.id != options.id for key in KeyFile.read(path).keys):
        sys.stderr.write(f"there is no key {options.id}\n")
        return 1
    KeyFile.change(path, lambda keys: keys.without(options.id))
    return 0
