"""`modestream import FORMAT FILE… --user USER`: the messages of a chat export become turns of a user, each once.

Enters: files of any size. Leaves: counts, and the messages that are not turns. Guaranteed: an interrupted import
continues where it was, by a journal in the data directory; with `--dry-run` nothing is sent.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from modestream_client import MemoryClient
from modestream_client.imports import Entry, ExportFormat, Problem, read_export, zone_of
from modestream_client.imports.publishing import ModesFor, Tally
from modestream_client.imports.reading import MAX_NAMED_PROBLEMS, MoreProblems

from operations.deployment import Progress, client_of, deployment_at, named_scope
from streams.settings import Settings

SAVE_EVERY_S = 2.0
"""Seconds of work repeated after a kill, and counted as duplicates."""

MAX_NAMED = 20
"""Parts printed by name, those with the most messages."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import, and its user. `mode_for` are rules such as `project:Foo=work`."""

    format: ExportFormat
    paths: tuple[Path, ...]
    user: str
    project: str | None = None
    zone: str | None = None
    mode: str | None = None
    mode_for: tuple[str, ...] = ()
    dry_run: bool = False
    principal: str | None = None


async def import_chats(options: ImportOptions, settings: Settings) -> int:
    """Import, or count, one file after another, and print a summary; return 0, or 1 if a message was refused.

    Raises ValueError for a file of another format, OSError for an unreadable one.
    """
    zone_of(options.zone)
    ModesFor(options.mode_for, options.mode)
    contents = _Contents()
    sizes: list[int] = []
    with Progress("read", 0, "messages") as progress:
        for path in options.paths:
            before = contents.entries
            await asyncio.to_thread(_count, options, path, contents, progress)
            sizes.append(contents.entries - before)
    if options.dry_run:
        return contents.report()
    settings = await deployment_at(settings)
    total = Tally()
    async with client_of(settings, options.principal) as memory:
        with Progress("import", contents.entries, "messages") as progress:
            for path, size in zip(options.paths, sizes, strict=True):
                before = total.read
                total.merge(await _import_file(options, path, settings, memory, progress, before))
                progress.reach(before + size, contents.entries)
    return _report(total)


async def _import_file(
    options: ImportOptions, path: Path, settings: Settings, memory: MemoryClient, progress: Progress, before: int
) -> Tally:
    """Import one file; `before` messages of other files are done."""
    journal = _Journal(options, path, settings)

    def advance(tally: Tally) -> None:
        progress.reach(before + tally.read)
        journal.keep()

    try:
        await memory.import_export(
            path,
            options.format,
            zone=options.zone,
            mode=options.mode,
            mode_for=options.mode_for,
            user_id=options.user,
            project_id=options.project,
            tally=journal.tally,
            on_progress=advance,
        )
    except BaseException:
        journal.save()
        raise
    journal.close()
    return journal.tally


class _Journal:
    """Progress of a file's import. Another file, also a later one of the same name, has separate progress."""

    def __init__(self, options: ImportOptions, path: Path, settings: Settings) -> None:
        """Read the progress of an earlier process."""
        file = path.stat()
        parts = (str(path.resolve()), str(file.st_size), str(file.st_mtime_ns), options.format, options.user)
        chosen = (options.project, options.zone, options.mode, *options.mode_for, settings.topic_prefix)
        self._path = settings.data_dir / "run" / f"import-{named_scope(*parts, *chosen)}.json"
        self.tally = Tally()
        with suppress(OSError, ValueError, TypeError, KeyError):
            self.tally = Tally.of(orjson.loads(self._path.read_bytes()))
        self._saved_at = time.monotonic()

    def keep(self) -> None:
        """Save the tally, unless that was done just now."""
        if time.monotonic() - self._saved_at >= SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        """Save the tally atomically."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".new")
        written.write_bytes(orjson.dumps(self.tally.result()))
        written.replace(self._path)
        self._saved_at = time.monotonic()

    def close(self) -> None:
        """Remove the file: the import is complete."""
        self._path.unlink(missing_ok=True)


@dataclass(slots=True)
class _Contents:
    entries: int = 0
    roles: Counter[str] = field(default_factory=Counter)
    parts: Counter[tuple[str, str]] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    conversations: set[str] = field(default_factory=set)
    times: tuple[str, str] | None = None
    resources: int = 0
    problems: list[Problem] = field(default_factory=list)
    refused: int = 0

    def add(self, entry: Entry) -> None:
        if isinstance(entry, MoreProblems):
            self.entries += entry.count
            self.refused += entry.count
            return
        self.entries += 1
        if isinstance(entry, Problem):
            self.refused += 1
            if len(self.problems) < MAX_NAMED_PROBLEMS:
                self.problems.append(entry)
            return
        turn = entry.turn
        self.roles[str(turn.get("role"))] += 1
        self.conversations.add(str(turn.get("conversation_id")))
        self.resources += len(turn.get("resources") or ())
        self.modes[str(turn.get("mode") or "")] += 1
        self.parts.update((kind, name) for kind, name in entry.belongs_to.items() if name)
        if at := turn.get("occurred_at"):
            earliest, latest = self.times or (str(at), str(at))
            self.times = min(earliest, str(at)), max(latest, str(at))

    def report(self) -> int:
        """Print the messages to import; return 1 if anything would be refused."""
        _print_problems(self.problems, self.refused)
        write = sys.stdout.write
        messages = self.entries - self.refused
        roles = ", ".join(f"{count} {role}" for role, count in self.roles.most_common())
        write(f"messages: {messages} ({roles or 'none'}), {self.refused} broken\n")
        write(f"conversations: {len(self.conversations)}, resources: {self.resources}\n")
        if self.times is not None:
            write(f"from {self.times[0]} to {self.times[1]}\n")
        for kind in ModesFor.KINDS:
            names = Counter({name: count for (of, name), count in self.parts.items() if of == kind})
            for name, count in names.most_common(MAX_NAMED):
                write(f"  {kind}:{name}: {count}\n")
        if chosen := ", ".join(f"{count} {mode}" for mode, count in self.modes.most_common() if mode):
            write(f"modes: {chosen}, {self.modes['']} by the service\n")
        write("dry run: nothing was sent\n")
        return 1 if self.refused else 0


def _count(options: ImportOptions, path: Path, contents: _Contents, progress: Progress) -> None:
    modes = ModesFor(options.mode_for, options.mode)
    with path.open("rb") as source:
        for entry in map(modes.applied, read_export(source, options.format, zone_of(options.zone))):
            contents.add(entry)
            progress.reach(contents.entries, contents.entries)


def _print_problems(problems: Iterable[Problem], refused: int) -> None:
    for problem in problems:
        of_field = f" ({problem.field})" if problem.field else ""
        sys.stderr.write(f"{problem.place}: {problem.code}: {problem.message}{of_field}\n")
    if refused > MAX_NAMED_PROBLEMS:
        sys.stderr.write(f"and {refused - MAX_NAMED_PROBLEMS} more\n")


def _report(tally: Tally) -> int:
    """Print the outcome of the messages; return 1 if any was refused."""
    _print_problems(tally.problems, tally.refused)
    forgotten = f", {tally.forgotten} stay forgotten" if tally.forgotten else ""
    sys.stdout.write(
        f"import: {tally.read} read, {tally.stored} stored, {tally.duplicate} there already{forgotten},"
        f" {tally.refused} refused\n"
    )
    return 1 if tally.refused else 0
