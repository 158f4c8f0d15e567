"""Edit the pipelines by command: validate, and write an accepted change as a revision.

Enters: commands of operators. Leaves: revisions. Guaranteed: what breaks a rule changes nothing; of two edits at a time
one counts, and the other is validated against it or refused; a command that is delivered twice makes one revision.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from modestream_client.arguments import EditPipeline, GetPipeline, ListRevisions, RollbackPipeline
from pydantic_core import to_json

from agents.ports.clock import Clock
from agents.ports.commands import CommandResult, parse_arguments
from agents.ports.pipelines import RequestComparison, Revisions, RunnablePipelines
from agents.rules.pipelines.editing import apply_edits
from schemas.failures import Rejected
from schemas.messages.commands import Command
from schemas.state.pipelines import Revision, Topology

MAX_ATTEMPTS = 5
"""Attempts of one command that finds another revision before its own."""

Change = Callable[[Revision], Topology]
"""Returns the topology after a change of this revision. Raises Rejected."""


class EditPipelines:
    """Commands in, revisions out."""

    def __init__(
        self,
        partition: int,
        revisions: Revisions,
        pipelines: RunnablePipelines,
        clock: Clock,
        compare: RequestComparison,
    ) -> None:
        """`partition` is part of what identifies a command."""
        self._compare = compare
        self._partition = partition
        self._revisions = revisions
        self._pipelines = pipelines
        self._clock = clock

    async def get_pipeline(self, command: Command, _offset: int) -> CommandResult:
        """Show a revision with all steps, their contracts and settings. Raises Rejected `not_found`."""
        number = parse_arguments(GetPipeline, command).revision
        revision = self._revisions.current() if number is None else self._find(number)
        return CommandResult(await self._view(revision))

    async def list_revisions(self, command: Command, _offset: int) -> CommandResult:
        """List the last revisions, latest first."""
        latest = self._revisions.latest(parse_arguments(ListRevisions, command).limit)
        return CommandResult(
            {"current": self._revisions.current().number, "revisions": [revision.summary() for revision in latest]}
        )

    async def edit_pipeline(self, command: Command, offset: int) -> CommandResult:
        """Accept all edits of a command, or none. Raises Rejected with the rule that one breaks, or `conflict`."""
        wanted = parse_arguments(EditPipeline, command)
        if wanted.compare_last is not None and not wanted.dry_run:
            raise Rejected("invalid_value", "only a dry run compares", "arguments.compare_last")
        about = {"note": wanted.note}
        if wanted.dry_run:
            current = self._expected(wanted.expected_revision)
            topology = apply_edits(current.topology, wanted.edits)
            drafted = await self._pipelines.draft(topology)
            draft = current.model_copy(update={"topology": topology, "hash": topology.digest})
            shown = {**await self._view(draft), "dry_run": True}
            if wanted.compare_last is None:
                return CommandResult(shown)
            boundary, running = command.scope.boundary, self._pipelines.current
            compared = await self._compare(boundary, running, drafted, wanted.compare_last)
            return CommandResult({**shown, "comparison": compared})

        def change(current: Revision) -> Topology:
            return apply_edits(current.topology, wanted.edits)

        return await self._make(command, offset, wanted.expected_revision, change, about)

    async def rollback_pipeline(self, command: Command, offset: int) -> CommandResult:
        """Make an earlier revision count again, as a new one: what was in between stays in the list."""
        wanted = parse_arguments(RollbackPipeline, command)
        restored = self._find(wanted.revision)
        about = {"note": wanted.note, "restores": restored.number}
        return await self._make(command, offset, wanted.expected_revision, lambda _: restored.topology, about)

    async def _make(
        self, command: Command, offset: int, expected: int | None, change: Change, about: Mapping[str, Any]
    ) -> CommandResult:
        request = f"{self._partition}:{offset}:{hashlib.sha256(to_json(command.arguments)).hexdigest()[:16]}"
        if (made := self._revisions.made_by(request)) is not None:
            return CommandResult(await self._view(made))
        for _ in range(MAX_ATTEMPTS):
            current = self._expected(expected)
            topology = change(current)
            await self._pipelines.draft(topology)
            if topology == current.topology:
                return CommandResult(await self._view(current))
            revision = Revision(
                number=current.number + 1,
                parent=current.number,
                hash=topology.digest,
                author=command.author,
                created_at=self._clock.now(),
                request=request,
                topology=topology,
                **about,
            )
            if await self._revisions.append(revision):
                return CommandResult(await self._view(revision))
        raise Rejected("conflict", "the pipelines are being edited by others; look at them, and try again")

    def _expected(self, expected: int | None) -> Revision:
        current = self._revisions.current()
        if expected is not None and expected != current.number:
            message = f"the pipelines are at revision {current.number} by now, not {expected}"
            raise Rejected("conflict", message, "arguments.expected_revision")
        return current

    def _find(self, number: int) -> Revision:
        revision = self._revisions.find(number)
        if revision is None:
            raise Rejected("not_found", f"there is no revision {number}", "arguments.revision")
        return revision

    async def _view(self, revision: Revision) -> dict[str, Any]:
        return await self._pipelines.describe(revision)
