"""The options of the commands over a whole deployment, and how they are run."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Coroutine

from modestream_client import MemoryClientError

from schemas.failures import Unavailable
from streams.operations.deployment import NoDeployment
from streams.operations.health import show_health
from streams.operations.jobs import COMMANDS, JobOptions, run_jobs
from streams.operations.selection import Selection
from streams.settings import Settings


def add_options(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of a command."""
    if name in (*COMMANDS, "health"):
        _add_selection(parser)
        parser.add_argument("--mode", help="only this mode (all)")
    if name in COMMANDS:
        parser.add_argument(
            "--user-timeout", type=float, default=3600.0, help="seconds that one user's job may take (%(default)s)"
        )


def run(name: str, options: argparse.Namespace, settings: Settings) -> int:
    """Run a command; return its exit code: 0, 1 if something failed, 2 if it could not begin."""
    # What Kafka's client logs while it connects is told by the command itself.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_running(name, options, settings))
    except (NoDeployment, Unavailable, MemoryClientError, ValueError, OSError) as problem:
        sys.stderr.write(f"{name}: {problem}\n")
        return 2


def _running(name: str, options: argparse.Namespace, settings: Settings) -> Coroutine[None, None, int]:
    if name == "health":
        return show_health(_selection(options), options.mode, settings)
    return run_jobs(JobOptions(name, _selection(options), options.mode, options.user_timeout), settings)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="all users of the deployment")
    which.add_argument("--user", action="append", help="this user; may be repeated")
    parser.add_argument("--project", help="only this project of each user (all)")
    parser.add_argument("--at-once", type=_positive, default=4, help="users at the same time (%(default)s)")
    parser.add_argument("--principal", help="the caller, where the deployment has a file of grants")


def _selection(options: argparse.Namespace) -> Selection:
    users = None if options.all else frozenset(options.user)
    return Selection(users, options.project, options.at_once, options.principal)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
