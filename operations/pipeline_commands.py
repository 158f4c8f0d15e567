"""`python -m streams pipeline …`: show, edit and roll back the pipelines of a running deployment.

A client of the topics. Prints JSON, or lines for people; exit code 1 with the reason where it is refused.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modestream_client.boundary import BoundaryFields
from modestream_client.failures import MemoryClientError, MemoryServiceError
from pydantic_core import from_json, to_json

from operations.deployment import NoDeployment, client_of, deployment_at
from operations.evaluate import EvaluateOptions, evaluate_users, printed, refusal_of
from schemas.failures import Unavailable
from schemas.scope_models import some_scope
from schemas.state.policies import OPERATOR
from streams.settings import Settings

TIMEOUT_S = 30.0


def add_pipeline_commands(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="VERB", dest="verb")
    show = verbs.add_parser("show", help="every step, with its contract and settings, as JSON")
    show.add_argument("--revision", type=int, help="an earlier revision")
    edit = verbs.add_parser("edit", help="apply the edits of a JSON file, all or none")
    edit.add_argument("file", type=Path, help='{"edits": […], "note": …}; docs/pipelines.md')
    edit.add_argument("--note", help="the reason, stored with the revision")
    edit.add_argument("--expected-revision", type=int, help="refuse unless this revision is current")
    edit.add_argument("--dry-run", action="store_true", help="check, and change nothing")
    edit.add_argument("--compare", metavar="USER", help="with --dry-run: what changes in this user's last requests")
    edit.add_argument("--last", type=int, default=20, help="requests that are compared (%(default)s)")
    revisions = verbs.add_parser("revisions", help="the last revisions, latest first")
    revisions.add_argument("--limit", type=int, default=50, help="(%(default)s)")
    rollback = verbs.add_parser("rollback", help="restore an earlier revision")
    rollback.add_argument("revision", type=int)
    rollback.add_argument("--note", help="the reason, stored with the revision")
    for verb in (edit, rollback):
        guard = verb.add_mutually_exclusive_group()
        guard.add_argument("--guard", action="append", metavar="USER", help="refuse what finds less of this user's log")
        guard.add_argument("--guard-sample", type=int, metavar="N", help="the same on the logs of N users")
        unjudged = "with a guard: change also where there are fewer questions than a verdict needs"
        verb.add_argument("--allow-unjudged", action="store_true", help=unjudged)
    for verb in (show, edit, revisions, rollback):
        verb.add_argument("--principal", help=f"the caller, where the deployment has a file of grants ({OPERATOR})")


def run_pipeline_command(options: argparse.Namespace, settings: Settings) -> int:
    """Run a subcommand; return the exit code."""
    try:
        name, arguments = _command_of(options)
    except (OSError, ValueError) as problem:
        sys.stderr.write(f"{options.file}: {problem}\n")
        return 1

    async def send() -> dict[str, Any]:
        if _is_guarded(options) and (refusal := await _guard(options, arguments, settings)) is not None:
            raise MemoryServiceError("conflict", refusal)
        scope = some_scope(settings.scope_model)
        if user := arguments.get("compare_user"):
            scope |= BoundaryFields(settings.scope_model.boundary_fields).values(user)
        async with client_of(settings, options.principal, TIMEOUT_S, scope) as client:
            return dict(await client.command(name, arguments))

    try:
        result = asyncio.run(send())
    except (MemoryClientError, NoDeployment, Unavailable, ValueError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    sys.stdout.write(_shown(options.verb, result) + "\n")
    return 0


def _is_guarded(options: argparse.Namespace) -> bool:
    is_change = options.verb == "rollback" or (options.verb == "edit" and not options.dry_run)
    return is_change and bool(options.guard or options.guard_sample)


async def _guard(options: argparse.Namespace, arguments: dict[str, Any], settings: Settings) -> str | None:
    """Return why the change is refused; otherwise note in its arguments which revision was evaluated."""
    other: dict[str, Any] = {name: arguments[name] for name in ("edits", "revision") if name in arguments}
    users = frozenset(options.guard) if options.guard else None
    asked = EvaluateOptions(users, options.guard_sample, principal=options.principal, arguments=other)
    evaluation = await evaluate_users(asked, await deployment_at(settings))
    if evaluation.failures:
        user, reason = min(evaluation.failures.items())
        return f"the evaluation of {user} failed, nothing was changed: {reason}"
    figures = evaluation.report()
    if (refusal := refusal_of(figures, allow_unjudged=options.allow_unjudged)) is not None:
        return refusal
    sys.stderr.write(printed(figures))
    # Another change in between was not evaluated.
    arguments.setdefault("expected_revision", figures["revision"])
    return None


def _command_of(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return a command and its arguments. Raises OSError or ValueError for an unreadable file of edits."""
    if options.verb == "show":
        return "get_pipeline", _without_none(revision=options.revision)
    if options.verb == "revisions":
        return "list_revisions", {"limit": options.limit}
    if options.verb == "rollback":
        return "rollback_pipeline", _without_none(revision=options.revision, note=options.note)
    edits = from_json(options.file.read_bytes(), allow_inf_nan=False)
    further = _without_none(
        note=options.note,
        expected_revision=options.expected_revision,
        dry_run=options.dry_run or None,
        compare_user=options.compare,
        compare_last=options.last if options.compare else None,
    )
    return "edit_pipeline", {**edits, **further}


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _shown(verb: str, result: Mapping[str, Any]) -> str:
    if verb == "show":
        return to_json(result, indent=2).decode()
    if verb == "revisions":
        return "\n".join(_revision_line(revision, result["current"]) for revision in result["revisions"])
    if comparison := result.get("comparison"):
        return to_json(comparison, indent=2).decode()
    draft = "valid; nothing was changed, still " if result.get("dry_run") else ""
    return f"{draft}revision {result['revision']} {result['hash'][:12]}"


def _revision_line(revision: Mapping[str, Any], current: int) -> str:
    mark = "*" if revision["number"] == current else " "
    restored = "" if revision["restores"] is None else f"restores {revision['restores']} "
    about = (revision["created_at"], revision["author"] or "-", restored + revision["note"])
    return f"{mark} {revision['number']:>4} {revision['hash'][:12]} {'  '.join(about)}".rstrip()
