"""The modes of a request, and their searches in vector space."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agents.rules.index.memory_columns import MemoryColumns, MemoryKind, MemoryRow, Trait
from agents.rules.query.plans import ModeSearch, count_other_modes, current_mode, mode_searches_of, requested_modes
from schemas.failures import Rejected
from schemas.models.vectors import MemoryFilter
from schemas.state.modes import Mode, ModeDeclarations


def mode(name: str, embedder: str = "tiny32", project: str | None = None, **fields: str) -> Mode:
    return Mode(name=name, embedder=embedder, embedding_dim=32, project=project, **fields)


DECLARED = ModeDeclarations(
    modes=(mode("code"), mode("journal"), mode("local", project="p1"), mode("code", "tiny48", "p2")),
    user_default="journal",
    project_defaults={"p1": "local"},
)


@pytest.mark.parametrize(
    ("asked", "projects", "names"),
    [
        ("code", None, ["code"]),
        ("general", ("p1",), ["general"]),
        (["journal", "code", "journal"], ("p1",), ["journal", "code"]),
        ("local", ("p1",), ["local"]),
        ("local", ("p2", "p1"), ["local"]),
        ("*", ("p2",), ["code", "general", "journal"]),
        ("*", None, ["code", "general", "journal", "local"]),
        (["local", "*"], ("p1",), ["local", "code", "general", "journal"]),
    ],
)
def test_requested_modes_keep_their_order(
    asked: str | list[str], projects: Sequence[str] | None, names: list[str]
) -> None:
    assert requested_modes(asked, DECLARED, projects) == names


@pytest.mark.parametrize(
    ("asked", "projects", "code"),
    [
        ("never", None, "unknown_mode"),
        ("", None, "unknown_mode"),
        (["code", "never"], None, "unknown_mode"),
        (["never", "*"], None, "unknown_mode"),
        ("local", ("p2",), "unknown_mode"),
        ([], None, "invalid_value"),
    ],
)
def test_undeclared_modes_are_rejected(asked: str | list[str], projects: Sequence[str] | None, code: str) -> None:
    with pytest.raises(Rejected) as refused:
        requested_modes(asked, DECLARED, projects)
    assert refused.value.code == code
    assert refused.value.field == "mode"


def test_error_message_stays_short() -> None:
    with pytest.raises(Rejected) as refused:
        requested_modes("x" * 100_000, DECLARED, None)
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("conversation_mode", "projects", "name"),
    [
        ("code", ("p1",), "code"),
        (None, ("p1",), "local"),
        (None, ("p1", "p1"), "local"),
        (None, ("p2",), "journal"),
        (None, ("p1", "p2"), "journal"),
        (None, None, "journal"),
        ("deleted", ("p2",), "journal"),
        ("local", ("p2",), "journal"),
        ("local", None, "local"),
    ],
)
def test_default_mode_comes_from_conversation_then_project_then_user(
    conversation_mode: str | None, projects: Sequence[str] | None, name: str
) -> None:
    assert current_mode(conversation_mode, DECLARED, projects) == name


def test_default_mode_without_declarations_is_general() -> None:
    assert current_mode(None, ModeDeclarations(), ("p1",)) == "general"
    assert current_mode("gone", ModeDeclarations(user_default="gone"), None) == "general"


def kind(project: str, name: str, type_: str = "episodic") -> MemoryKind:
    return MemoryKind((("project_id", project), ("user_id", "ana")), name, type_, "medium")


HELD = [kind("p1", "code"), kind("p2", "code"), kind("p3", "general")]


def searches(declared: ModeDeclarations, names: list[str], projects: tuple[str, ...] | None) -> list[ModeSearch]:
    where = MemoryFilter("ana", {"user_id": ("ana",), "project_id": projects}, modes=tuple(names), types=("episodic",))
    return mode_searches_of(names, declared, where, HELD)


def shapes(found: list[ModeSearch]) -> list[tuple[str, str, tuple[str, ...] | None]]:
    return [(search.mode.name, search.mode.embedder, search.where.scope["project_id"]) for search in found]


@pytest.mark.parametrize(
    ("names", "projects", "found"),
    [
        (["journal"], None, [("journal", "tiny32", None)]),
        (["journal"], ("p1", "p2"), [("journal", "tiny32", ("p1", "p2"))]),
        (["general"], None, [("general", "general", None)]),
        (["code"], ("p1",), [("code", "tiny32", ("p1",))]),
        (["code"], ("p2",), [("code", "tiny48", ("p2",))]),
        (["code"], ("p1", "p2"), [("code", "tiny32", ("p1",)), ("code", "tiny48", ("p2",))]),
        (["code"], None, [("code", "tiny32", ("p1", "p3")), ("code", "tiny48", ("p2",))]),
        (["local"], None, [("local", "tiny32", ("p1",))]),
        (["local"], ("p2", "p1"), [("local", "tiny32", ("p1",))]),
        (["journal", "general"], ("p1",), [("journal", "tiny32", ("p1",)), ("general", "general", ("p1",))]),
    ],
)
def test_each_vector_space_has_one_search_with_its_projects(
    names: list[str], projects: tuple[str, ...] | None, found: list[tuple[str, str, tuple[str, ...] | None]]
) -> None:
    assert shapes(searches(DECLARED, names, projects)) == found


def test_mode_search_narrows_the_mode_and_keeps_other_filters() -> None:
    for result in searches(DECLARED, ["code", "journal"], None):
        assert result.where.modes == (result.mode.name,)
        assert result.where.boundary == "ana"
        assert result.where.types == ("episodic",)
        assert result.where.scope["user_id"] == ("ana",)


def test_projects_with_equal_embedders_share_a_search() -> None:
    declared = ModeDeclarations(
        modes=(mode("code"), mode("code", project="p2", description="another"), mode("code", "x", "p3"))
    )
    assert shapes(searches(declared, ["code"], None)) == [("code", "tiny32", ("p1", "p2")), ("code", "x", ("p3",))]


@pytest.mark.parametrize("prefix", ["query_prefix", "passage_prefix"])
def test_another_prefix_needs_another_search(prefix: str) -> None:
    declared = ModeDeclarations(modes=(mode("code"), mode("code", project="p2", **{prefix: "search: "})))
    assert len(searches(declared, ["code"], ("p1", "p2"))) == 2


def test_mode_without_memories_still_has_a_search() -> None:
    assert shapes(searches(ModeDeclarations(modes=(mode("local", project="p7"),)), ["local"], None)) == [
        ("local", "tiny32", ("p7",))
    ]


def test_project_with_its_own_general_gets_a_second_search() -> None:
    declared = ModeDeclarations(modes=(mode("general", "tiny48", "p2"),))
    assert shapes(searches(declared, ["general"], ("p1", "p2"))) == [
        ("general", "general", ("p1",)),
        ("general", "tiny48", ("p2",)),
    ]


def memory_columns(*memories: tuple[MemoryKind, int, bool]) -> MemoryColumns:
    kinds = dict.fromkeys(memory[0] for memory in memories)
    traits = {place: Trait(kind, None, None) for place, kind in enumerate(kinds)}
    places = list(kinds)
    rows = [
        MemoryRow(number, f"m{number}", places.index(name), occurred_ms, number, 5, 0.5, superseded, None)
        for number, (name, occurred_ms, superseded) in enumerate(memories)
    ]
    return MemoryColumns(rows, traits)


MEMORIES = memory_columns(
    (kind("p1", "general"), 1, False),
    (kind("p1", "journal"), 2, False),
    (kind("p1", "journal"), 3, False),
    (kind("p1", "journal"), 4, True),
    (kind("p1", "journal", "semantic"), 5, False),
    (kind("p2", "code"), 6, False),
)
SEARCHED = MemoryFilter("ana", {"project_id": None}, modes=("general",))


@pytest.mark.parametrize(
    ("where", "include_superseded", "counts"),
    [
        (SEARCHED, False, {"code": 1, "journal": 3}),
        (SEARCHED, True, {"code": 1, "journal": 4}),
        (replace(SEARCHED, modes=("general", "code")), False, {"journal": 3}),
        (replace(SEARCHED, modes=("general", "code", "journal")), False, {}),
        (replace(SEARCHED, scope={"project_id": ("p1",)}), False, {"journal": 3}),
        (replace(SEARCHED, types=("semantic",)), False, {"journal": 1}),
        (replace(SEARCHED, since_ms=3, until_ms=6), False, {"journal": 2}),
        (replace(SEARCHED, scope={"project_id": ("p9",)}), False, {}),
    ],
)
def test_count_other_modes_applies_the_other_filters(
    where: MemoryFilter, include_superseded: bool, counts: dict[str, int]
) -> None:
    found = count_other_modes(MEMORIES, where, include_superseded=include_superseded)
    assert list(found.items()) == sorted(counts.items())


def test_request_over_too_many_query_prefixes_is_too_large() -> None:
    modes = [Mode(name=f"m{n}", embedder="general", embedding_dim=384, query_prefix=f"{n}: ") for n in range(60)]
    with pytest.raises(Rejected, match="name fewer") as refusal:
        requested_modes("*", ModeDeclarations(modes=tuple(modes)), None)
    assert refusal.value.code == "too_large"
    assert len(requested_modes([f"m{n}" for n in range(16)], ModeDeclarations(modes=tuple(modes)), None)) == 16


def test_modes_of_other_projects_do_not_count() -> None:
    own = [
        Mode(name="work", embedder="general", embedding_dim=384, query_prefix=f"{n}: ", project=f"p{n}")
        for n in range(20)
    ]
    assert requested_modes("work", ModeDeclarations(modes=tuple(own)), ("p1",)) == ["work"]


def test_all_modes_that_may_be_declared_are_searched() -> None:
    own = [
        Mode(name=f"m{n}", embedder="general", embedding_dim=384, project="p1" if n % 2 else None) for n in range(128)
    ]
    assert len(requested_modes("*", ModeDeclarations(modes=tuple(own)), ("p1",))) == 129
