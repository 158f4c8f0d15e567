"""Options of the commands over branches: `fork`, `compare`, `promote` and `drop`."""

import argparse
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from operations.deployment import add_principal
from operations.fork import ForkOptions, fork, read_trial
from operations.trial import CompareOptions, compare, drop, promote
from streams.settings import Settings


class BranchCommand(NamedTuple):
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Settings], Coroutine[None, None, int]]


def _add_fork(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", required=True, help="the user whose log is copied")
    parser.add_argument("--to", required=True, metavar="USER", help="the name of the fork, a user of the deployment")
    parser.add_argument("--project", help="only the turns of this project (all)")
    parser.add_argument(
        "--until", type=_moment, metavar="TIME", help="only records accepted until then: 2026-03-01T09:30:00Z (all)"
    )
    parser.add_argument(
        "--without",
        type=_json_object,
        metavar="FILTERS",
        help='without turns that match, as in a search: {"metadata":{"source":"mail"}}',
    )
    parser.add_argument(
        "--pipeline",
        type=Path,
        metavar="FILE",
        help='other embedders of modes, nothing else: {"modes":{"general":"multilingual"}} (the same)',
    )
    add_principal(parser)


def _fork(options: argparse.Namespace, settings: Settings) -> Coroutine[None, None, int]:
    trial = None if options.pipeline is None else read_trial(options.pipeline, options.user)
    wanted = ForkOptions(
        user=options.user,
        to=options.to,
        project=options.project,
        until=options.until,
        without=options.without,
        embedders={} if trial is None else trial.modes,
        principal=options.principal,
    )
    return fork(wanted, settings)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", required=True, help="the user")
    parser.add_argument("--with", dest="fork", required=True, metavar="USER", help="its fork")
    parser.add_argument(
        "--questions", type=Path, metavar="FILE", help='JSON lines: {"question": …} (turns of the fork)'
    )
    add_principal(parser)


def _add_promote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", required=True, help="the user")
    parser.add_argument("--from", dest="fork", required=True, metavar="USER", help="its fork")
    add_principal(parser)


def _add_drop(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", required=True, help="the fork")
    add_principal(parser)


BRANCH_COMMANDS: Mapping[str, BranchCommand] = {
    "fork": BranchCommand(_add_fork, _fork),
    "compare": BranchCommand(
        _add_compare,
        lambda options, settings: compare(
            CompareOptions(options.user, options.fork, options.questions, options.principal), settings
        ),
    ),
    "promote": BranchCommand(
        _add_promote, lambda options, settings: promote(options.user, options.fork, options.principal, settings)
    ),
    "drop": BranchCommand(_add_drop, lambda options, settings: drop(options.user, options.principal, settings)),
}


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError("a time has a zone, as in 2026-03-01T09:30:00Z")
    return moment


def _json_object(text: str) -> dict[str, Any]:
    value = from_json(text)
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("give a JSON object")
    return value
