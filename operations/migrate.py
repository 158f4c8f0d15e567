"""Move a deployment to other settings: copy its logs to another prefix, while it serves.

Enters: the settings of the deployment, and the changes. Leaves: a deployment with the new prefix that has the same
memories with the same ids, once its own worker has read the logs. Run again, it continues where it was.
"""

import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from operations.compare import COMPARED, COMPARED_ARCHIVED, compare_deployments
from operations.copy.copier import NOTHING, Copier, CopyPosition, CopyReport
from operations.copy.entry_builder import CopiedRecord, Entry, EntryBuilder, LogSource, LogTarget, Outcome, Positions
from operations.copy.kafka_source import open_logs
from operations.copy.kafka_target import open_target
from operations.deployment import Progress, deployment_at, named_scope
from operations.switch import NotSwitched, check_replaced, drop, is_replaced, switch
from schemas.internal.service import Successor, check_topic_prefix
from schemas.messages.records import Record
from schemas.scopes import Scope
from streams.adapters.kafka.deployment_log import read_successor
from streams.settings import Settings

COUNTED = (
    "turns",
    "forgotten",
    "commands",
    "consolidate",
    "revisions",
    "already copied",
    "misplaced",
    "derived",
    "invalid",
    "distilled of forgotten ones",
    "refused",
    "lost",
)
"""Counts of a report, in the order in which they are printed."""


LATE_S = 10.0
"""Seconds after a switch until the former logs are checked once more."""


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """Settings of the new deployment; None: as the former one."""

    to: str
    partitions: int | None = None
    scope_model: type[Scope] | None = None
    to_broker: str | None = None
    principal: str | None = None
    dry_run: bool = False
    follow: bool = False
    compare: bool = True
    mend: bool = False
    switch: bool = False
    drop: bool = False

    def target(self, source: Settings) -> Settings:
        """Return the settings of the new deployment. Raises ValueError if it is the former one, or can't be one."""
        changed = {
            "topic_prefix": check_topic_prefix(self.to),
            "partitions": self.partitions or source.partitions,
            "scope_model": self.scope_model or source.scope_model,
            "broker": self.to_broker or source.broker,
        }
        target = source.model_copy(update=changed)
        if (target.topic_prefix, target.broker) == (source.topic_prefix, source.broker):
            raise ValueError("--to is the prefix of the deployment itself: choose another one")
        return target

    def successor(self, source: Settings, recorded: Successor | None) -> Settings:
        """Return the settings of the former deployment's successor, which its record names as `found`.

        They lack its partitions. Raises NotSwitched without a successor, or with another one than named.
        """
        if recorded is None or not recorded.serves:
            raise NotSwitched(f"{source.topic_prefix} is not replaced by {self.to}: --switch does that")
        broker = self.to_broker or recorded.broker or source.broker
        target = source.model_copy(
            update={
                "topic_prefix": check_topic_prefix(self.to),
                "scope_model": self.scope_model or source.scope_model,
                "broker": broker,
            }
        )
        check_replaced(source, target, recorded)
        return target

    def check_complete(self, report: CopyReport) -> None:
        """Raise NotSwitched if the new deployment lacks records, unless comparison is off."""
        if report.lost and self.compare:
            raise NotSwitched(
                f"the new deployment did not take some records, such as {report.lost[0]}; the former one stays as it"
                " is. With --no-compare the same command goes on without them"
            )


@dataclass(slots=True)
class CopyRun:
    """One run of a copy, with its progress and the file of its position."""

    title: str
    source: LogSource
    builder: EntryBuilder
    outcome: Outcome
    path: Path
    follow: bool = False
    report: CopyReport = field(default_factory=CopyReport)

    async def to(self, target: LogTarget, progress: Progress) -> CopyReport:
        """Copy until nothing is left, or until cancelled."""
        position = CopyPosition.load(self.path)
        copier = Copier(
            self.source,
            target,
            self.builder,
            position,
            self.outcome,
            saved=lambda reached: reached.save(self.path),
            advanced=progress.reach,
        )
        await copier.resume()
        await copier.run(follow=self.follow)
        return copier.report


async def migrate(options: MigrateOptions, settings: Settings) -> int:
    """Copy, compare, and switch or print how to; return 0, or 1 if the deployments differ or a command was refused."""
    source = await deployment_at(settings)
    if options.drop:
        target = await deployment_at(options.successor(source, await read_successor(source)))

        async def copy_rest() -> None:
            """Copy records that clients still wrote to a replaced deployment. Raises NotSwitched for a loss."""
            async with open_logs(source) as logs:
                options.check_complete(await _copy(await _run_of(logs, source, target), options, target))

        await drop(source, target, copy_rest)
        return 0
    target = options.target(source)
    is_switched = await is_replaced(source, target)
    async with open_logs(source) as logs:
        run = await _run_of(logs, source, target)
        run.follow = options.follow and (is_switched or not options.switch)
        report = await _copy(run, options, target)
        if options.dry_run or is_switched:
            # Later records of the successor are not differences.
            return 0
        if options.switch:
            options.check_complete(report)
        compared = COMPARED_ARCHIVED if await logs.has_archived() else COMPARED
        same = not options.compare or await _compare(run, options, source, target, compared)
        if not options.switch:
            _say_how_to_switch(source, target)
        elif same:
            await _switch(run, options, source, target)
        else:
            sys.stderr.write("not switched: the deployments differ\n")
    return 0 if same else 1


async def _run_of(logs: LogSource, source: Settings, target: Settings) -> CopyRun:
    """Return a copy of the records that a deployment's successor lacks."""
    sys.stderr.write(f"reading the forgotten memories of {source.topic_prefix}\n")
    outcome = await logs.outcome()
    builder = EntryBuilder(source.partitions, source.scope_model, target.scope_model, outcome.forgotten)
    # With other scope fields all ids change: the outcome can't be compared.
    is_comparable = set(source.scope_model.model_fields) == set(target.scope_model.model_fields)
    return CopyRun("migrate", logs, builder, outcome if is_comparable else NOTHING, position_file(source, target))


async def _compare(
    run: CopyRun, options: MigrateOptions, source: Settings, target: Settings, compared: Sequence[str]
) -> bool:
    """Compare, and keep copying meanwhile, as both are written to; return True if both are alike."""
    if tuple(source.scope_model.boundary_fields) != tuple(target.scope_model.boundary_fields):
        sys.stderr.write("not compared: the boundary fields differ\n")
        return True
    following = asyncio.create_task(_copy(replace(run, report=CopyReport(), follow=True), options, target))
    try:
        return await compare_deployments(
            source, target, options.principal, mend=options.mend, forgotten=run.builder.forgotten, compared=compared
        )
    finally:
        # As if killed: the next copy looks for the records written by this one.
        following.cancel()
        await asyncio.wait({following})


async def _switch(run: CopyRun, options: MigrateOptions, source: Settings, target: Settings) -> None:
    """Switch, then copy records that programs without a gateway still write to the former deployment."""

    async def copy() -> None:
        options.check_complete(await _copy(replace(run, report=CopyReport()), options, target, until_applied=True))

    await switch(source, target, copy)
    sys.stdout.write(f"gateways of {source.topic_prefix} now send to {target.topic_prefix}\n")
    await asyncio.sleep(LATE_S)
    await _copy(replace(run, report=CopyReport(), follow=options.follow), options, target)


async def _copy(run: CopyRun, options: MigrateOptions, target: Settings, *, until_applied: bool = False) -> CopyReport:
    """Copy and print the new records, and return the result."""
    with Progress(run.title, 0, "records") as progress:
        if options.dry_run:
            copier = Copier(
                run.source, DryTarget(target.partitions), run.builder, CopyPosition(), advanced=progress.reach
            )
            await copier.run()
            report = copier.report
        else:
            async with open_target(target, options.principal, progress.say) as opened:
                report = await run.to(opened, progress)
                if until_applied:
                    await opened.wait_settled(turns=True)
    print_report("migrate", report)
    return report


def position_file(source: Settings, target: Settings) -> Path:
    name = named_scope(source.broker, source.topic_prefix, target.broker, target.topic_prefix)
    return source.data_dir / "run" / f"copy-{name}.json"


def print_report(title: str, report: CopyReport) -> None:
    """Print the counts on standard output, refused commands and lost records on standard error."""
    counted = [f"{report.counts[name]} {name}" for name in COUNTED if report.counts[name]]
    sys.stdout.write(f"{title}: {', '.join(counted) or 'nothing new'}\n")
    for refusal in report.refusals:
        sys.stderr.write(f"refused, as by the former deployment: {refusal}\n")
    for lost in report.lost:
        sys.stderr.write(f"lost, the new deployment does not take it: {lost}\n")


def _say_how_to_switch(source: Settings, target: Settings) -> None:
    variables = [f"MODESTREAM_TOPIC_PREFIX={target.topic_prefix}"]
    if target.partitions != source.partitions:
        variables.append(f"MODESTREAM_PARTITIONS={target.partitions}")
    if target.broker != source.broker:
        variables.append(f"MODESTREAM_BROKER={target.broker}")
    sys.stdout.write(
        "To switch: stop the producers that write to Kafka themselves; run this command with --switch, which copies"
        f" what is left and lets the gateways follow; start them with {' '.join(variables)}. The former deployment"
        " stays as it is until --drop.\n"
    )


class DryTarget:
    """Implements `LogTarget`."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    async def ends(self) -> Positions:
        """Return an empty mapping: nothing is written."""
        return {}

    async def copied_since(self, _since: Positions) -> frozenset[CopiedRecord]:
        return frozenset()

    async def write(self, entry: Entry) -> int:
        return entry.origin[2]

    async def carry_out(self, _entry: Entry) -> str | None:
        """Take a command or trigger."""
        return None

    async def wait_applied(self, scope: Mapping[str, str], offset: int) -> None:
        """Return at once."""

    async def wait_embedded(self, scope: Mapping[str, str]) -> None:
        """Return at once."""

    async def keep_distilled(self, _scope: Mapping[str, str], _kept: Collection[str]) -> int:
        return 0

    async def wait_settled(self, *, turns: bool = False) -> None:
        """Return at once."""

    async def revision_keys(self) -> frozenset[bytes | None]:
        return frozenset()

    async def set_revision(self, _revision: Record) -> None:
        """Take a revision."""
