"""`list_runs` filters, and shows a sender the runs of its projects alone."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from modestream_client.runs import Pipeline, Run, RunFailure, RunPart

from agents.commands.edit_pipelines import ShowRuns
from agents.ports.commands import RunPage
from schemas.failures import Rejected
from schemas.messages.commands import Command
from schemas.scopes import Scope


def run(run_id: str, pipeline: Pipeline, part: RunPart, day: int, project: Any = "p1", code: str | None = None) -> Run:
    return Run(
        run_id=run_id,
        pipeline=pipeline,
        part=part,
        at=datetime(2026, 3, day, tzinfo=UTC),
        ms=1.0,
        scope={} if project is None else {"user_id": "u1", "project_id": project},
        memory_id="m1" if pipeline == "memorize" else None,
        failure=None if code is None else RunFailure(code=code),
    )


class FilledLog:
    """A log of five runs of partition 2."""

    runs = (
        run("unread", "memorize", "accept", 5, None, "invalid_json"),
        run("several", "retrieve", "answer", 4, ["p1", "p2"]),
        run("every", "retrieve", "answer", 3, "*", "unavailable"),
        run("understood", "memorize", "understand", 2, "p2"),
        run("turn", "memorize", "accept", 1),
    )

    async def newest(
        self, partition: int, boundary: str, admits: Callable[[Run], bool], limit: int, since_ms: int = 0
    ) -> RunPage:
        """Return the runs, as if the log went back further."""
        assert partition == 2
        assert boundary == "u1"
        assert since_ms % 1000 == 0
        return RunPage([run for run in self.runs if admits(run)][:limit], is_complete=False)


async def shown(permitted: tuple[str, ...] | None = None, **arguments: Any) -> list[str]:
    command = Command(command="list_runs", scope=Scope(user_id="u1"), arguments=arguments)
    result = (await ShowRuns(2, FilledLog()).list_runs(command.limited_to(permitted), 0)).result
    assert result["is_complete"] is False
    return [run["run_id"] for run in result["runs"]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["unread", "several", "every", "understood", "turn"]),
        ({"pipeline": "memorize"}, ["unread", "understood", "turn"]),
        ({"failed": True}, ["unread", "every"]),
        ({"failed": False}, ["several", "understood", "turn"]),
        ({"since": "2026-03-03T00:00:00Z"}, ["unread", "several", "every"]),
        ({"memory_id": "m1", "failed": False}, ["understood", "turn"]),
        ({"run_id": "every"}, ["every"]),
        ({"limit": 2}, ["unread", "several"]),
    ],
)
async def test_arguments_restrict_the_list(arguments: dict[str, Any], expected: list[str]) -> None:
    assert await shown(**arguments) == expected


async def test_a_sender_sees_runs_whose_projects_it_may_all_read() -> None:
    assert await shown(("p1",)) == ["turn"]
    assert await shown(("p1", "p2")) == ["several", "understood", "turn"]
    assert await shown(()) == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": 201}, "arguments.limit"),
        ({"pipeline": "forget"}, "arguments.pipeline"),
        ({"failed": 1}, "arguments.failed"),
    ],
)
async def test_invalid_arguments_are_refused(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(Rejected) as refused:
        await shown(**arguments)
    assert refused.value.code == "invalid_value"
    assert refused.value.field == field
