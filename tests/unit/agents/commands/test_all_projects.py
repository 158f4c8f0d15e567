"""Commands that reach all projects of a user, from a sender that is permitted in one of them."""

from typing import Any

import pytest

from schemas.internal.changes import JOB_KINDS
from schemas.state.modes import GENERAL
from tests.harnesses.commands import CommandsHarness

REACHES_ALL: list[tuple[str, dict[str, Any]]] = [
    ("declare_mode", {"name": GENERAL, "embedder": "tiny32"}),
    ("declare_mode", {"name": "new", "embedder": "tiny32", "is_default": True}),
    ("rename_mode", {"name": "shared", "new_name": "mine"}),
    ("delete_mode", {"name": "shared", "memories": "forget"}),
    ("delete_mode", {"name": "shared", "memories": "move:general"}),
    ("set_default_mode", {"name": "shared"}),
    ("set_default_mode", {"name": None}),
    ("forget", {"user": True}),
    *((kind, {"all_projects": True}) for kind in JOB_KINDS),
]

STAYS_WITHIN: list[tuple[str, dict[str, Any]]] = [
    ("declare_mode", {"name": "new", "embedder": "tiny32", "for_project": True}),
    ("rename_mode", {"name": "own", "new_name": "mine"}),
    ("delete_mode", {"name": "own", "memories": "move:shared"}),
    ("set_default_mode", {"name": "own", "for_project": True}),
    ("list_modes", {}),
    ("forget", {"project": True}),
    ("forget", {"conversation_id": "c"}),
    *((kind, {}) for kind in JOB_KINDS),
]


@pytest.fixture
async def limited(harness: CommandsHarness) -> CommandsHarness:
    """The commands of a sender that is permitted in p1; `shared` is a mode of all projects, `own` one of p1."""
    await harness("declare_mode", name="shared", embedder="tiny32")
    await harness("declare_mode", name="own", embedder="tiny32", for_project=True)
    harness.permitted = ("p1",)
    return harness


@pytest.mark.parametrize(("command", "arguments"), REACHES_ALL)
async def test_command_on_all_projects_needs_a_grant_of_all(
    limited: CommandsHarness, command: str, arguments: dict[str, Any]
) -> None:
    assert await limited.rejection(command, **arguments) == ("not_allowed", None)
    limited.permitted = None
    await limited.handle(command, **arguments)


@pytest.mark.parametrize(("command", "arguments"), STAYS_WITHIN)
async def test_command_within_the_project_needs_no_more(
    limited: CommandsHarness, command: str, arguments: dict[str, Any]
) -> None:
    await limited.handle(command, **arguments)
