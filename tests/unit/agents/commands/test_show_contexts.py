"""`get_context` shows a sender what it may read, and nothing from before a `forget` of the user."""

from datetime import timedelta
from typing import Any

import pytest

from agents.commands.edit_pipelines import ShowContexts
from schemas.failures import Rejected
from schemas.messages.commands import Command
from schemas.messages.published import LoggedContext, LoggedReference
from schemas.moments import milliseconds_of
from schemas.scopes import Scope
from schemas.state.memories import Memory
from schemas.state.modes import ForgottenBefore, ModeDeclarations
from tests.builders.items import distilled_of
from tests.builders.memories import START, made
from tests.fakes.clock import FakeClock

TURNS = [made(f"Tea at {number}.", number) for number in range(2)]
SUMMARY = distilled_of(*TURNS, text="Tea.")


class Here:
    """The tables of partition 2, and a log of one context."""

    def __init__(self, project: Any = "p1", forgotten: ForgottenBefore | None = None) -> None:
        self.memories = {memory.memory_id: memory for memory in (*TURNS, SUMMARY)}
        self.forgotten = forgotten
        ids = (TURNS[0].memory_id, SUMMARY.memory_id, "gone", "category:tea")
        self.context = LoggedContext(
            context_id="c",
            scope={"user_id": "u1", "project_id": project},
            at=START,
            kind="assemble",
            mode="general",
            interaction_mode="GENERAL",
            revision=0,
            query_sha256="",
            references=tuple(
                LoggedReference(
                    memory_id=each, version=1, section="rules", tokens=4, offset=7 if each == ids[0] else None
                )
                for each in ids
            ),
        )

    async def find(self, partition: int, boundary: str, context_id: str) -> LoggedContext | None:
        return self.context if (partition, boundary, context_id) == (2, "u1", "c") else None

    async def shown(self, permitted: tuple[str, ...] | None = None, context_id: str = "c", user: str = "u1") -> Any:
        command = Command(command="get_context", scope=Scope(user_id=user), arguments={"context_id": context_id})
        show = ShowContexts(2, self, self, Modes(self.forgotten), FakeClock())  # type: ignore[arg-type]
        return (await show.get_context(command.limited_to(permitted), 0)).result

    def get(self, memory_id: str) -> Memory | None:
        return self.memories.get(memory_id)


class Modes:
    """Declarations of a user, perhaps after a `forget`."""

    def __init__(self, forgotten: ForgottenBefore | None) -> None:
        self._forgotten = forgotten

    def get(self, _boundary: str) -> ModeDeclarations:
        return ModeDeclarations(forgotten_turns=self._forgotten)


async def test_each_reference_has_its_turns() -> None:
    said, summary, gone, category = (await Here().shown())["references"]
    assert said["turns"] == [{"turn_id": "t-0", "conversation_id": "c1", "partition": 2, "offset": 7}]
    assert [turn["turn_id"] for turn in summary["turns"]] == ["t-0", "t-1"]
    assert gone["forgotten"] is True
    assert "forgotten" not in category


@pytest.mark.parametrize(("project", "permitted"), [("p1", ("p1",)), (["p1", "p2"], ("p1", "p2")), ("*", None)])
async def test_a_sender_sees_contexts_of_its_projects(project: Any, permitted: tuple[str, ...] | None) -> None:
    assert (await Here(project).shown(permitted))["context_id"] == "c"


@pytest.mark.parametrize(("project", "permitted"), [("p2", ("p1",)), (["p1", "p2"], ("p1",)), ("*", ("p1",))])
async def test_a_context_of_other_projects_is_not_found(project: Any, permitted: tuple[str, ...]) -> None:
    with pytest.raises(Rejected) as error:
        await Here(project).shown(permitted)
    assert error.value.code == "not_found"


@pytest.mark.parametrize(("later_s", "is_shown"), [(-1, True), (0, False), (60, False)])
async def test_nothing_from_before_a_forget_of_the_user_is_found(later_s: int, is_shown: bool) -> None:
    at_ms = milliseconds_of(START + timedelta(seconds=later_s))
    here = Here(forgotten=ForgottenBefore(offset=3, at_ms=at_ms))
    if is_shown:
        assert await here.shown()
        return
    with pytest.raises(Rejected) as error:
        await here.shown()
    assert error.value.code == "not_found"


@pytest.mark.parametrize(("context_id", "user"), [("d", "u1"), ("c", "u2")])
async def test_another_context_or_user_is_not_found(context_id: str, user: str) -> None:
    with pytest.raises(Rejected) as error:
        await Here().shown(context_id=context_id, user=user)
    assert error.value.code == "not_found"
