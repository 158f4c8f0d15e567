"""`python -m streams key add|list|revoke`: the file of keys, from the command line."""

import argparse
import os
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic import ValidationError

from gateway.keys.key_file import Key, KeyFile, digest_of, new_key


def add_key_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their options; `options.act` is then the function to run with the file."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    add = actions.add_parser("add", help="make a key and print it, once")
    add.add_argument("--principal", required=True, help="whose grants it has, by the policy file of AUTHORIZATION")
    add.add_argument("--user", help="the only user that it may name, and the one of /mcp")
    add.add_argument("--label", default="", help="what it is for")
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
