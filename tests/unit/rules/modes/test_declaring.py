from typing import Any

import pytest
from modestream_client.arguments import DeclareMode, DeleteMode, RenameMode, SetDefaultMode

from agents.rules.modes.declaring import declare_mode, delete_mode, needs_reembedding, rename_mode, set_default_mode
from schemas.failures import Rejected
from schemas.state.modes import GENERAL, EmbedderDescription, Mode, ModeDeclarations

TINY = EmbedderDescription(name="tiny32", dim=32)
OTHER = EmbedderDescription(name="tiny48", dim=48)


def declared(*names: str, **fields: Any) -> ModeDeclarations:
    """Modes by name; `p1/name` is a mode of the project p1."""
    return ModeDeclarations(modes=tuple(mode_of(name) for name in names), **fields)


def mode_of(name: str, **fields: Any) -> Mode:
    project, _, own = name.rpartition("/")
    return Mode(name=own, embedder="tiny32", embedding_dim=32, project=project or None, **fields)


def names(after: ModeDeclarations) -> list[str]:
    return sorted(f"{mode.project}/{mode.name}" if mode.project else mode.name for mode in after.modes)


def declaring(before: ModeDeclarations, name: str, project: str = "p1", **arguments: Any) -> ModeDeclarations:
    return declare_mode(before, DeclareMode(name=name, embedder="tiny32", **arguments), TINY, project)


def renaming(before: ModeDeclarations, name: str, new_name: str, project: str = "p1") -> tuple[ModeDeclarations, Mode]:
    return rename_mode(before, RenameMode(name=name, new_name=new_name), project)


def deleting(
    before: ModeDeclarations, name: str, memories: str = "forget", project: str = "p1"
) -> tuple[ModeDeclarations, Mode]:
    return delete_mode(before, DeleteMode(name=name, memories=memories), project)


def refused(rule: Any, *arguments: Any) -> tuple[str, str | None]:
    with pytest.raises(Rejected) as error:
        rule(*arguments)
    return error.value.code, error.value.field


def test_mode_is_declared_for_the_user_or_one_project() -> None:
    after = declaring(declaring(ModeDeclarations(), "code"), "code", "p1", for_project=True)
    assert names(after) == ["code", "p1/code"]
    own, everywhere = after.find("code", "p1"), after.find("code", "p2")
    assert own is not None
    assert everywhere is not None
    assert own.project == "p1"
    assert everywhere.project is None


def test_redeclared_mode_keeps_omitted_fields() -> None:
    first = declaring(
        ModeDeclarations(), "code", description="programs", decay="slow", query_prefix="q: ", passage_prefix="p: "
    )
    after = declare_mode(first, DeclareMode(name="code", embedder="tiny48", extraction_hints="functions"), OTHER, "p1")
    [mode] = after.modes
    assert mode.embedder == "tiny48"
    assert mode.embedding_dim == 48
    assert mode.description == "programs"
    assert mode.decay == "slow"
    assert mode.query_prefix == "q: "
    assert mode.passage_prefix == "p: "
    assert mode.extraction_hints == "functions"


def test_empty_prefix_overrides_the_embedders() -> None:
    [mode] = declaring(declaring(ModeDeclarations(), "code", passage_prefix="p: "), "code", passage_prefix="").modes
    assert mode.passage_prefix == ""


def test_embedder_alias_is_resolved() -> None:
    [mode] = declare_mode(ModeDeclarations(), DeclareMode(name="code", embedder="an-alias"), TINY, "p1").modes
    assert mode.embedder == "tiny32"
    assert mode.embedding_dim == 32


def test_general_can_be_redeclared() -> None:
    after = declaring(ModeDeclarations(), GENERAL)
    general = after.find(GENERAL, "p9")
    assert general is not None
    assert general.embedder == "tiny32"
    assert [mode.name for mode in after.visible(("p9",))] == [GENERAL]


@pytest.mark.parametrize(
    ("for_project", "in_project", "in_another"),
    [
        (False, ("code", "user_default"), ("code", "user_default")),
        (True, ("code", "project_default"), (GENERAL, "fallback")),
    ],
)
def test_mode_is_declared_as_default(for_project: bool, in_project: Any, in_another: Any) -> None:
    after = declaring(ModeDeclarations(), "code", is_default=True, for_project=for_project)
    assert after.default("p1") == in_project
    assert after.default("p2") == in_another


def test_redeclared_default_stays_default() -> None:
    assert declaring(declaring(ModeDeclarations(), "code", is_default=True), "code").user_default == "code"


@pytest.mark.parametrize(
    ("change", "is_needed"),
    [
        ({"embedder": "tiny48"}, True),
        ({"passage_prefix": "p: "}, True),
        ({"passage_prefix": ""}, True),
        ({"query_prefix": "q: "}, False),
        ({"description": "other", "decay": "none", "extraction_hints": "x"}, False),
        ({}, False),
    ],
)
def test_only_embedder_and_passage_prefix_need_reembedding(change: dict[str, str], is_needed: bool) -> None:
    before = mode_of("code")
    assert needs_reembedding(before, before.model_copy(update=change)) is is_needed
    assert not needs_reembedding(None, before)


def test_renamed_mode_remembers_its_old_names() -> None:
    after, mode = renaming(declared("code", "diary"), "code", "programs")
    assert names(after) == ["diary", "programs"]
    assert mode.name == "programs"
    assert mode.embedder == "tiny32"
    assert mode.formerly == ("code",)
    assert renaming(after, "programs", "software")[1].formerly == ("code", "programs")


def test_defaults_follow_a_renamed_mode() -> None:
    before = declared("code", "diary", user_default="code", project_defaults={"p1": "code", "p2": "diary"})
    after, _ = renaming(before, "code", "programs")
    assert after.user_default == "programs"
    assert after.project_defaults == {"p1": "programs", "p2": "diary"}


def test_rename_keeps_defaults_of_the_other_mode_of_that_name() -> None:
    before = declared("code", "p1/code", user_default="code", project_defaults={"p1": "code", "p2": "code"})
    after, mode = renaming(before, "code", "programs", "p2")
    assert mode.project is None
    assert after.user_default == "programs"
    assert after.project_defaults == {"p1": "code", "p2": "programs"}
    after, mode = renaming(before, "code", "programs", "p1")
    assert mode.project == "p1"
    assert after.user_default == "code"
    assert after.project_defaults == {"p1": "programs", "p2": "code"}


def test_rename_is_idempotent() -> None:
    after, mode = renaming(declared("code", user_default="code"), "code", "programs")
    assert renaming(after, "code", "programs") == (after, mode)


def test_repeated_project_rename_keeps_the_users_mode() -> None:
    after, mode = renaming(declared("code", "p1/code"), "code", "programs")
    assert renaming(after, "code", "programs") == (after, mode)
    assert names(after) == ["code", "p1/programs"]


def test_rename_to_the_same_name_is_allowed() -> None:
    before = declared("code")
    assert renaming(before, "code", "code") == (before, before.modes[0])


@pytest.mark.parametrize(
    ("name", "new_name", "error"),
    [
        ("code", "diary", ("conflict", "arguments.new_name")),
        ("code", GENERAL, ("conflict", "arguments.new_name")),
        ("code", "own", ("conflict", "arguments.new_name")),
        (GENERAL, "mine", ("conflict", "arguments.name")),
        ("gone", "new", ("unknown_mode", "arguments.name")),
        ("gone", "diary", ("unknown_mode", "arguments.name")),
        ("theirs", "new", ("unknown_mode", "arguments.name")),
    ],
)
def test_rename_is_refused(name: str, new_name: str, error: tuple[str, str]) -> None:
    before = declared("code", "diary", "p1/own", "p2/theirs")
    assert refused(renaming, before, name, new_name) == error


def test_repeated_rename_of_a_redeclared_name_conflicts() -> None:
    after, _ = renaming(declared("code"), "code", "programs")
    assert refused(renaming, declaring(after, "code"), "code", "programs") == ("conflict", "arguments.new_name")


def test_project_rename_onto_the_users_mode_conflicts() -> None:
    after, _ = renaming(declared("code"), "code", "programs")
    own = declaring(after, "code", for_project=True)
    assert refused(renaming, own, "code", "programs") == ("conflict", "arguments.new_name")


def test_delete_clears_defaults() -> None:
    before = declared("code", "diary", user_default="code", project_defaults={"p1": "code", "p2": "diary"})
    after, mode = deleting(before, "code")
    assert names(after) == ["diary"]
    assert mode.name == "code"
    assert after.user_default is None
    assert after.project_defaults == {"p2": "diary"}


def test_delete_keeps_defaults_of_the_other_mode_of_that_name() -> None:
    before = declared("code", "p1/code", user_default="code", project_defaults={"p1": "code", "p2": "code"})
    after, mode = deleting(before, "code", project="p2")
    assert mode.project is None
    assert after.user_default is None
    assert after.project_defaults == {"p1": "code"}
    after, mode = deleting(before, "code", project="p1")
    assert mode.project == "p1"
    assert after.user_default == "code"
    assert after.project_defaults == {"p2": "code"}


@pytest.mark.parametrize("memories", ["forget", "move:diary", "move:general"])
def test_delete_is_idempotent(memories: str) -> None:
    after, mode = deleting(declared("code", "diary"), "code", memories)
    again, same = deleting(after, "code", memories)
    assert again == after
    assert same.name == mode.name
    assert same.project == mode.project


def test_repeated_project_delete_keeps_the_users_mode() -> None:
    after, mode = deleting(declared("code", "p1/code"), "code")
    again, same = deleting(after, "code")
    assert names(again) == ["code"]
    assert same.name == "code"
    assert same.project == "p1"
    assert mode.project == "p1"


def test_project_delete_is_not_repeated_into_a_mode_that_is_gone() -> None:
    after, _ = deleting(declared("code", "p1/code", "diary"), "code", "move:diary")
    without, _ = deleting(after, "diary", "move:code")
    assert refused(deleting, without, "code", "move:diary") == ("unknown_mode", "arguments.memories")


def test_users_mode_can_be_deleted_after_the_projects() -> None:
    after, _ = deleting(declared("code", "p1/code", "diary"), "code")
    assert names(deleting(after, "code", project="p2")[0]) == ["diary"]
    assert names(deleting(after, "code", "move:diary")[0]) == ["diary"]


def test_redeclared_mode_can_be_deleted_again() -> None:
    after, _ = deleting(declared("code"), "code")
    again = declaring(after, "code")
    assert again.deleted == {}
    assert names(deleting(again, "code")[0]) == []


def test_project_redeclaration_keeps_the_users_deletion() -> None:
    after, _ = deleting(declared("code"), "code")
    assert declaring(after, "code", for_project=True).deleted == {"code": "forget"}


@pytest.mark.parametrize(
    ("name", "memories", "error"),
    [
        (GENERAL, "forget", ("conflict", "arguments.name")),
        ("gone", "forget", ("unknown_mode", "arguments.name")),
        ("theirs", "forget", ("unknown_mode", "arguments.name")),
        ("code", "move:code", ("invalid_value", "arguments.memories")),
        ("code", "move:gone", ("unknown_mode", "arguments.memories")),
        ("code", "move:own", ("unknown_mode", "arguments.memories")),
    ],
)
def test_delete_is_refused(name: str, memories: str, error: tuple[str, str]) -> None:
    assert refused(deleting, declared("code", "p1/own", "p2/theirs"), name, memories) == error


def test_project_memories_can_move_to_another_project_mode() -> None:
    before = declared("p1/code", "p1/own")
    assert names(deleting(before, "code", "move:own")[0]) == ["p1/own"]


def test_defaults_are_set_and_cleared() -> None:
    before = declared("code", "p1/own")
    users = set_default_mode(before, SetDefaultMode(name="code"), "p1")
    both = set_default_mode(users, SetDefaultMode(name="own", for_project=True), "p1")
    assert both.default("p1") == ("own", "project_default")
    assert both.default("p2") == ("code", "user_default")
    back = set_default_mode(both, SetDefaultMode(name=None, for_project=True), "p1")
    assert back.default("p1") == ("code", "user_default")
    assert set_default_mode(back, SetDefaultMode(name=None), "p1").default("p1") == (GENERAL, "fallback")
    assert set_default_mode(both, SetDefaultMode(name="own", for_project=True), "p1") == both


@pytest.mark.parametrize(
    ("name", "for_project"), [("gone", False), ("gone", True), ("own", False), ("theirs", True), ("theirs", False)]
)
def test_default_must_be_a_valid_mode(name: str, for_project: bool) -> None:
    before = declared("p1/own", "p2/theirs")
    wanted = SetDefaultMode(name=name, for_project=for_project)
    assert refused(set_default_mode, before, wanted, "p1") == ("unknown_mode", "arguments.name")
