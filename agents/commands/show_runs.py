"""Show the last runs of a user: the command `list_runs`."""

from collections.abc import Callable

from modestream_client.arguments import ListRuns
from modestream_client.runs import Run

from agents.ports.command_types import CommandResult, parse_arguments
from agents.ports.run_log import RunLog
from schemas.messages.commands import Command
from schemas.scopes import PROJECT_FIELD


class ShowRuns:
    """The command `list_runs` in, the newest runs of its boundary out."""

    def __init__(self, partition: int, log: RunLog) -> None:
        self._partition = partition
        self._log = log

    async def list_runs(self, command: Command, _offset: int) -> CommandResult:
        """Show the newest runs, of all projects that the sender may read. Raises Unavailable.

        A sender that may not read all projects sees no runs of several of which it may not read one, and none of
        records that could not be read.
        """
        wanted = parse_arguments(ListRuns, command)
        admits = _filter(wanted, command.permitted_projects)
        since_ms = 0 if wanted.since is None else round(wanted.since.timestamp() * 1000)
        page = await self._log.newest(self._partition, command.scope.boundary, admits, wanted.limit, since_ms)
        runs = [run.model_dump(mode="json", by_alias=True) for run in page.runs]
        return CommandResult({"runs": runs, "is_complete": page.is_complete})


def _filter(wanted: ListRuns, projects: tuple[str, ...] | None) -> Callable[[Run], bool]:
    def admits(run: Run) -> bool:
        return (
            (wanted.pipeline is None or run.pipeline == wanted.pipeline)
            and (wanted.failed is None or (run.failure is not None) == wanted.failed)
            and (wanted.since is None or run.at >= wanted.since)
            and (wanted.memory_id is None or run.memory_id == wanted.memory_id)
            and (wanted.run_id is None or run.run_id == wanted.run_id)
            and _is_within(run, projects)
        )

    return admits


def _is_within(run: Run, projects: tuple[str, ...] | None) -> bool:
    """True if all projects of a run are among these, None for all projects."""
    if projects is None:
        return True
    selected = run.scope.get(PROJECT_FIELD)
    return selected is not None and set([selected] if isinstance(selected, str) else selected) <= set(projects)
