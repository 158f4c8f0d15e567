"""Commands on modes and defaults, and their changes of memories."""

from typing import Any

import pytest

from schemas.moments import iso
from schemas.state.modes import GENERAL, ModeDeclarations
from tests.harnesses.commands import CommandsHarness


async def test_new_user_has_one_mode_and_no_defaults(harness: CommandsHarness) -> None:
    listed = await harness("list_modes")
    assert [(mode["name"], mode["is_default"]) for mode in listed["modes"]] == [(GENERAL, True)]
    assert listed["user_default"] is None
    assert listed["project_default"] is None


async def test_declared_mode_is_answered_with_its_dimension_and_listed(harness: CommandsHarness) -> None:
    declared = await harness("declare_mode", name="code", embedder="tiny32", description="programs", is_default=True)
    assert declared["name"] == "code"
    assert declared["embedder"] == "tiny32"
    assert declared["embedding_dim"] == 32
    assert declared["description"] == "programs"
    assert declared["is_default"] is True
    listed = await harness("list_modes")
    assert declared in listed["modes"]
    assert [mode["name"] for mode in listed["modes"]] == ["code", GENERAL]
    assert listed["user_default"] == "code"


async def test_preset_is_an_embedder_and_no_mode(harness: CommandsHarness) -> None:
    assert (await harness("declare_mode", name="diary", embedder="journal"))["embedding_dim"] == 768
    assert [mode["name"] for mode in (await harness("list_modes"))["modes"]] == ["diary", GENERAL]


async def test_mode_says_why_its_embedder_does_not_work(harness: CommandsHarness) -> None:
    harness.embedders.missing("tiny48")
    declared = await harness("declare_mode", name="notes", embedder="tiny48")
    assert declared["embedder_status"] == {"state": "failed", "error": "embedder 'tiny48' is missing"}


async def test_declaration_loads_the_model(harness: CommandsHarness) -> None:
    harness.embedders.missing("tiny48")
    harness.embedders.bring("tiny48")
    await harness("declare_mode", name="notes", embedder="tiny48")
    [listed, _] = (await harness("list_modes"))["modes"]
    assert listed["embedder_status"] == {"state": "ready"}


async def test_model_that_is_too_large_is_refused_by_its_limit(harness: CommandsHarness) -> None:
    harness.embedders.refuse("journal", "journal has 210 MB, more than 100 MB (FETCH_MAX_MODEL_MB)")
    assert await harness.rejection("declare_mode", name="notes", embedder="journal") == (
        "too_large",
        "arguments.embedder",
    )
    assert "journal" not in [embedder["name"] for embedder in (await harness("list_modes"))["embedders"]]


async def test_project_mode_is_visible_only_there(harness: CommandsHarness) -> None:
    await harness("declare_mode", name="code", embedder="tiny32", for_project=True)
    names = {
        project: [mode["name"] for mode in (await harness("list_modes", project))["modes"]] for project in ("p1", "p2")
    }
    assert names == {"p1": ["code", GENERAL], "p2": [GENERAL]}


async def test_modes_are_private_to_their_user(harness: CommandsHarness) -> None:
    await harness("declare_mode", name="code", embedder="tiny32")
    assert harness.declarations("u2") == ModeDeclarations()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "arguments.name"),
        ({"name": "code"}, "arguments.embedder"),
        ({"name": "code", "embedder": "word2vec"}, "arguments.embedder"),
        ({"name": "code", "embedder": "x" * 250}, "arguments.embedder"),
        ({"name": "Code", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "a" * 65, "embedder": "tiny32"}, "arguments.name"),
        ({"name": "code\n", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "*", "embedder": "tiny32"}, "arguments.name"),
        ({"name": "code", "embedder": "tiny32", "decay": "sudden"}, "arguments.decay"),
        ({"name": "code", "embedder": "tiny32", "decay": {"episodic": "sudden"}}, "arguments.decay.episodic"),
        ({"name": "code", "embedder": "tiny32", "decay": {"dream": "fast"}}, "arguments.decay.dream"),
        ({"name": "code", "embedder": "tiny32", "decay": ["fast"]}, "arguments.decay"),
        ({"name": "code", "embedder": "tiny32", "decay": {}}, "arguments.decay"),
        ({"name": "code", "embedder": "tiny32", "prompt_overrides": {"rank": "x"}}, "arguments.prompt_overrides.rank"),
        ({"name": "code", "embedder": "tiny32", "is_default": "yes"}, "arguments.is_default"),
        ({"name": "code", "embedder": "tiny32", "query_prefix": 7}, "arguments.query_prefix"),
    ],
)
async def test_mode_that_cannot_be_declared(harness: CommandsHarness, arguments: dict[str, Any], field: str) -> None:
    assert await harness.rejection("declare_mode", **arguments) == ("invalid_value", field)


async def test_prompt_of_a_mode_has_a_limit(harness: CommandsHarness) -> None:
    longest = {"distil": "x" * 2000}
    await harness("declare_mode", name="code", embedder="tiny32", prompt_overrides=longest)
    refused = await harness.rejection(
        "declare_mode", name="code", embedder="tiny32", prompt_overrides={"distil": "x" * 2001}
    )
    assert refused == ("too_large", "arguments.prompt_overrides.distil")


@pytest.mark.parametrize(
    "fields",
    [
        {"decay": "none"},
        {"decay": {"episodic": "fast", "semantic": "none"}},
        {"prompt_overrides": {"understand": "Names of birds.", "distil": "One sentence."}},
        {"prompt_overrides": {}},
    ],
)
async def test_declared_fields_are_shown_and_replace_earlier_ones(
    harness: CommandsHarness, fields: dict[str, Any]
) -> None:
    before = {"decay": {"document": "slow"}, "prompt_overrides": {"categorize": "By continent."}}
    await harness("declare_mode", name="code", embedder="tiny32", **before)
    shown = await harness("declare_mode", name="code", embedder="tiny32", **fields)
    assert {name: shown[name] for name in before} == {**before, **fields}


async def test_mode_keeps_the_time_of_its_first_declaration(harness: CommandsHarness) -> None:
    first = await harness("declare_mode", name="code", embedder="tiny32")
    harness.clock.forward(3600)
    again = await harness("declare_mode", name="code", embedder="tiny32", description="changed")
    assert again["created_at"] == first["created_at"] != iso(harness.clock.now())


async def test_mode_that_nobody_declared_has_no_time(harness: CommandsHarness) -> None:
    [general] = (await harness("list_modes"))["modes"]
    assert general["created_at"] is None


@pytest.mark.parametrize("name", ["a", "a" * 64, "my-mode_2", "0"])
async def test_names_that_are_fine(harness: CommandsHarness, name: str) -> None:
    assert (await harness("declare_mode", name=name, embedder="tiny32"))["name"] == name


async def test_new_mode_changes_no_memory(harness: CommandsHarness) -> None:
    assert await harness.change("declare_mode", name="code", embedder="tiny32") is None


async def test_declaring_the_same_again_changes_no_memory(harness: CommandsHarness) -> None:
    first = await harness("declare_mode", name="code", embedder="tiny32", passage_prefix="p: ")
    again = await harness.handle("declare_mode", name="code", embedder="tiny32", query_prefix="q: ")
    assert again.change is None
    assert again.result == first | {"query_prefix": "q: "}


@pytest.mark.parametrize("anew", [{"embedder": "tiny48"}, {"embedder": "tiny32", "passage_prefix": "p: "}])
async def test_another_vector_space_has_the_memories_embedded_again(
    harness: CommandsHarness, anew: dict[str, str]
) -> None:
    await harness("declare_mode", name="code", embedder="tiny32")
    result = await harness.handle("declare_mode", name="code", **anew)
    change = result.change
    assert change is not None
    assert change.action == "stale"
    assert change.mode == "code"
    assert change.project is None
    assert change.except_projects == ()
    assert change.result == result.result


async def test_general_can_have_another_embedder(harness: CommandsHarness) -> None:
    change = await harness.change("declare_mode", name=GENERAL, embedder="tiny32")
    assert change is not None
    assert change.action == "stale"
    assert change.mode == GENERAL
    assert change.project is None


@pytest.mark.parametrize("name", ["code", GENERAL])
async def test_project_mode_takes_over_memories_of_the_user_mode(harness: CommandsHarness, name: str) -> None:
    await harness("declare_mode", "p2", name=name, embedder="tiny32")
    change = await harness.change("declare_mode", name=name, embedder="tiny48", for_project=True)
    assert change is not None
    assert change.action == "stale"
    assert change.mode == name
    assert change.project == "p1"
    assert await harness.change("declare_mode", "p3", name=name, embedder="tiny32", for_project=True) is None


async def test_user_mode_does_not_affect_projects_with_their_own(harness: CommandsHarness) -> None:
    await harness("declare_mode", name="code", embedder="tiny32")
    for project in ("p2", "p3"):
        await harness("declare_mode", project, name="code", embedder="tiny32", for_project=True)
    change = await harness.change("declare_mode", name="code", embedder="tiny48")
    assert change is not None
    assert change.project is None
    assert change.except_projects == ("p2", "p3")
    change = await harness.change("delete_mode", "p2", name="code", memories="move:general")
    assert change is not None
    assert change.project == "p2"
    assert change.except_projects == ()


async def test_rename_moves_the_memories(harness: CommandsHarness) -> None:
    await harness("declare_mode", name="code", embedder="tiny32", is_default=True)
    result = await harness.handle("rename_mode", name="code", new_name="programs")
    assert result.result["name"] == "programs"
    assert result.result["is_default"] is True
    change = result.change
    assert change is not None
    assert change.action == "move"
    assert change.mode == "code"
    assert change.to == "programs"
    assert change.memory_id is None
    assert change.result == result.result


async def test_repeated_rename_gives_the_same_result(harness: CommandsHarness) -> None:
    await harness("declare_mode", name="code", embedder="tiny32")
    first = await harness.handle("rename_mode", name="code", new_name="programs")
    assert await harness.handle("rename_mode", name="code", new_name="programs") == first


async def test_rename_to_an_existing_mode_conflicts(harness: CommandsHarness) -> None:
    for name in ("code", "diary"):
        await harness("declare_mode", name=name, embedder="tiny32")
    refused = await harness.rejection("rename_mode", name="code", new_name="diary")
    assert refused == ("conflict", "arguments.new_name")


@pytest.mark.parametrize(
    ("memories", "action", "to"),
    [("forget", "forget", None), ("move:diary", "move", "diary"), ("move:general", "move", GENERAL)],
)
async def test_delete_mode_forgets_or_moves_the_memories(
    harness: CommandsHarness, memories: str, action: str, to: str | None
) -> None:
    for name in ("code", "diary"):
        await harness("declare_mode", name=name, embedder="tiny32")
    result = await harness.handle("delete_mode", name="code", memories=memories)
    change = result.change
    assert change is not None
    assert change.action == action
    assert change.mode == "code"
    assert change.to == to
    assert change.result == result.result
    assert result.result == {"name": "code", "moved": 0, "forgotten": 0}
    assert harness.declarations().find("code", "p1") is None
    assert (await harness.handle("delete_mode", name="code", memories=memories)).change == change


@pytest.mark.parametrize("memories", ["", "keep", "move:", "move:Code", "forget\n", None, 1])
async def test_delete_mode_rejects_unknown_fates(harness: CommandsHarness, memories: Any) -> None:
    await harness("declare_mode", name="code", embedder="tiny32")
    refused = await harness.rejection("delete_mode", name="code", memories=memories)
    assert refused == ("invalid_value", "arguments.memories")


async def test_defaults_are_answered_as_they_are_from_now_on(harness: CommandsHarness) -> None:
    await harness("declare_mode", name="code", embedder="tiny32")
    assert await harness("set_default_mode", name="code") == {"user_default": "code", "project_default": None}
    effective = await harness("set_default_mode", name=GENERAL, for_project=True)
    assert effective == {"user_default": "code", "project_default": GENERAL}
    assert await harness("set_default_mode", name=None) == {"user_default": None, "project_default": GENERAL}
    assert await harness.rejection("set_default_mode") == ("invalid_value", "arguments.name")
    assert await harness.rejection("set_default_mode", name="gone") == ("unknown_mode", "arguments.name")


async def test_null_argument_equals_a_missing_one(harness: CommandsHarness) -> None:
    declared = await harness("declare_mode", name="code", embedder="tiny32", is_default=None, for_project=None)
    assert declared == await harness("declare_mode", name="code", embedder="tiny32")
    assert await harness.rejection("rename_mode", name="code", new_name=None) == ("invalid_value", "arguments.new_name")
    assert (await harness("set_default_mode", name=None, for_project=None))["user_default"] is None
