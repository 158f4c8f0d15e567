"""Options of the commands over a whole deployment, and how to run them."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path

from modestream_client import MemoryClientError
from modestream_client.imports import FORMATS

from operations.backup import RestoreOptions, back_up, restore
from operations.branches import BRANCH_COMMANDS
from operations.change_model import ModelChange, change_model
from operations.deployment import NoDeployment, Selection, add_principal
from operations.evaluate import EvaluateOptions, edits_in, evaluate
from operations.imports import ImportOptions, import_chats
from operations.jobs import COMMANDS, JobOptions, run_jobs, show_health
from operations.migrate import MigrateOptions, migrate
from operations.receipts import verify_receipts
from operations.switch import NotSwitched
from operations.verify import verify
from schemas.failures import Unavailable
from schemas.scope_models import load_scope
from streams.settings import Settings


def add_options(name: str, parser: argparse.ArgumentParser) -> None:
    if name in (*COMMANDS, "health", "verify", "change-model"):
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--all", action="store_true", help="all users of the deployment")
        which.add_argument("--user", action="append", help="this user; may be repeated")
        parser.add_argument("--at-once", type=_positive, default=4, help="users at the same time (%(default)s)")
        add_principal(parser)
    if name in (*COMMANDS, "health"):
        parser.add_argument("--project", help="only this project of each user (all)")
        parser.add_argument("--mode", help="only this mode (all)")
    if name in COMMANDS:
        parser.add_argument(
            "--user-timeout", type=float, default=3600.0, help="seconds that one user's job may take (%(default)s)"
        )
    if name in OWN_OPTIONS:
        OWN_OPTIONS[name](parser)
    if name == "verify":
        parser.add_argument("--fix", action="store_true", help="repair where possible")
        parser.add_argument("--receipts", action="store_true", help="only whether what was forgotten is erased in time")
    if name == "backup":
        parser.add_argument("--to", required=True, type=Path, metavar="DIR", help="the folder of the backup")
    if name == "restore":
        parser.add_argument(
            "--from", dest="folder", required=True, type=Path, metavar="DIR", help="the folder of the backup"
        )
        parser.add_argument(
            "--check", action="store_true", help="compare all files with the manifest, and write nothing"
        )
        parser.add_argument("--digest", metavar="HEX", help="refuse any other backup: the digest that `backup` printed")
        add_principal(parser)


def run(name: str, options: argparse.Namespace, settings: Settings) -> int:
    """Run a command; return its exit code: 0, 1 if something failed, 2 if it could not begin, 130 after Ctrl-C.

    Raises BrokenPipeError where the reader of its output has ended.
    """
    try:
        return asyncio.run(_running(name, options, settings))
    except BrokenPipeError:
        # The reader of the output has exited.
        raise
    except (NoDeployment, NotSwitched, Unavailable, MemoryClientError, ValueError, OSError) as problem:
        sys.stderr.write(f"{name}: {problem}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(f"{name}: stopped; the same command goes on\n")
        return 130


def _running(name: str, options: argparse.Namespace, settings: Settings) -> Coroutine[None, None, int]:
    if name in BRANCH_COMMANDS:
        return BRANCH_COMMANDS[name].run(options, settings)
    match name:
        case "health":
            running = show_health(_selection(options), options.mode, settings)
        case "verify":
            users = None if options.all else options.user
            checked = partial(verify, _selection(options), settings, fix=options.fix)
            running = verify_receipts(users, settings) if options.receipts else checked()
        case "change-model":
            change = ModelChange(options.mode, options.to, options.project, options.user_timeout)
            running = change_model(change, _selection(options), settings)
        case "migrate":
            running = migrate(_migration(options), settings)
        case "backup":
            running = back_up(options.to, settings)
        case "evaluate":
            running = evaluate(_evaluation(options), settings)
        case "import":
            running = import_chats(_import(options), settings)
        case "restore":
            restoring = RestoreOptions(options.folder, options.principal, options.check, options.digest)
            running = restore(restoring, settings)
        case _:
            running = run_jobs(JobOptions(name, _selection(options), options.mode, options.user_timeout), settings)
    return running


def _add_evaluation(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--user", action="append", help="questions of this user; may be repeated")
    which.add_argument("--sample", type=_positive, metavar="N", help="questions of N users")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--pipeline", type=Path, metavar="FILE", help="compare with these edits, as of `pipeline edit`")
    other.add_argument("--revision", type=int, help="compare with this revision")
    parser.add_argument("--project", help="only this project of each user (all)")
    parser.add_argument("--mode", help="only this mode (all)")
    parser.add_argument("--limit", type=_positive, default=200, help="questions of a user (%(default)s)")
    parser.add_argument("--budget", type=_positive, default=2000, help="tokens of a context (%(default)s)")
    by = parser.add_mutually_exclusive_group()
    by.add_argument("--by-model", action="store_true", help="have the language model word the questions")
    by.add_argument("--by-rules", action="store_true", help="also where a profile has the role `evaluate`")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--questions", action="store_true", help="print the questions with their evidence, and end")
    add_principal(parser)


def _evaluation(options: argparse.Namespace) -> EvaluateOptions:
    arguments = {
        "mode": options.mode,
        "limit": options.limit,
        "budget_tokens": options.budget,
        "by_model": True if options.by_model else False if options.by_rules else None,
        "revision": options.revision,
        "edits": None if options.pipeline is None else edits_in(options.pipeline),
    }
    return EvaluateOptions(
        users=frozenset(options.user) if options.user else None,
        sample=options.sample,
        project=options.project,
        principal=options.principal,
        arguments={name: value for name, value in arguments.items() if value is not None},
        as_json=options.json,
        only_questions=options.questions,
    )


def _add_model_change(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", required=True, help="the mode that gets another embedder")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", metavar="EMBEDDER", help="its new embedder; the former one rolls back")
    what.add_argument("--drop-former", action="store_true", help="remove the vectors of the former embedder")
    parser.add_argument("--project", help="change the mode of this project (the user's mode)")
    parser.add_argument(
        "--user-timeout", type=float, default=3600.0, help="seconds that one user's vectors may take (%(default)s)"
    )


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=FORMATS, metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="the unchanged export, zips included")
    parser.add_argument("--user", required=True, help="the user who gets the memories")
    parser.add_argument("--project", help="the project of all messages (default; for jsonl each line's)")
    parser.add_argument("--zone", help="the time zone of times without one, such as Europe/Berlin (UTC)")
    parser.add_argument("--mode", help="the mode of all messages (found by the service)")
    parser.add_argument(
        "--mode-for",
        action="append",
        default=[],
        metavar="PART=MODE",
        help="the mode of a part: project:NAME=MODE or conversation:NAME=MODE; may be repeated",
    )
    parser.add_argument("--dry-run", action="store_true", help="count the file's messages, by part, and send nothing")
    add_principal(parser)


def _import(options: argparse.Namespace) -> ImportOptions:
    return ImportOptions(
        format=options.format,
        paths=tuple(options.files),
        user=options.user,
        project=options.project,
        zone=options.zone,
        mode=options.mode,
        mode_for=tuple(options.mode_for),
        dry_run=options.dry_run,
        principal=options.principal,
    )


def _add_migration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="PREFIX", help="the topic prefix of the new deployment")
    parser.add_argument("--to-broker", metavar="ADDRESS", help="its broker (the same)")
    parser.add_argument("--partitions", type=_positive, help="its number of partitions (the same)")
    parser.add_argument("--scope-model", type=load_scope, help="dotted path of its scope model (the same)")
    parser.add_argument("--dry-run", action="store_true", help="count the records to copy, and write nothing")
    parser.add_argument("--follow", action="store_true", help="keep copying new records until Ctrl-C")
    parser.add_argument("--no-compare", action="store_true", help="skip the comparison, and ignore lost records")
    parser.add_argument("--switch", action="store_true", help="then let the gateways send to the new deployment")
    parser.add_argument("--drop", action="store_true", help="copy new records, and delete the former topics")
    parser.add_argument(
        "--mend", action="store_true", help="move memories to the former deployment's modes, and forget those it lacks"
    )
    parser.add_argument("--principal", help="the caller, where the deployments have a file of grants")


def _migration(options: argparse.Namespace) -> MigrateOptions:
    """Return the options. Raises ValueError for `--drop` with an option that contradicts it."""
    for name in ("dry_run", "follow", "switch", "mend"):
        if options.drop and getattr(options, name):
            raise ValueError(f"--drop can't be combined with --{name.replace('_', '-')}")
    return MigrateOptions(
        to=options.to,
        partitions=options.partitions,
        scope_model=options.scope_model,
        to_broker=options.to_broker,
        principal=options.principal,
        dry_run=options.dry_run,
        follow=options.follow,
        compare=not options.no_compare,
        mend=options.mend,
        switch=options.switch,
        drop=options.drop,
    )


OWN_OPTIONS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "change-model": _add_model_change,
    "evaluate": _add_evaluation,
    "migrate": _add_migration,
    "import": _add_import,
    **{name: command.add_options for name, command in BRANCH_COMMANDS.items()},
}
"""What adds the options that only one command has."""


def _selection(options: argparse.Namespace) -> Selection:
    users = None if options.all else frozenset(options.user)
    return Selection(users, getattr(options, "project", None), options.at_once, options.principal)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
