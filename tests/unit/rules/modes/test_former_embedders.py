"""Which embedder a mode remembers, and until when it serves."""

from typing import Any

import pytest
from modestream_client.arguments import DeclareMode, RenameMode

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow, Trait
from agents.rules.modes.declaring import awaits_declared, declare_mode, drop_former, rename_mode
from schemas.state.memories import Embedding, Memory
from schemas.state.modes import EmbedderDescription, Mode, ModeDeclarations
from tests.builders.memories import embedded_in, made


def declaring(before: ModeDeclarations, embedder: str, *, former_serves: bool = False, **more: Any) -> ModeDeclarations:
    wanted = DeclareMode.model_validate({"name": "code", "embedder": embedder, **more})
    description = EmbedderDescription(name=embedder, dim=32)
    return declare_mode(before, wanted, description, "default", former_serves=former_serves)


def code(declared: ModeDeclarations) -> Mode:
    found = declared.find("code", "default")
    assert found is not None
    return found


def embedders(declared: ModeDeclarations) -> tuple[str, str | None]:
    mode = code(declared)
    return mode.embedder, mode.former.embedder if mode.former else None


def test_new_mode_has_no_former_embedder() -> None:
    assert embedders(declaring(ModeDeclarations(), "a")) == ("a", None)


def test_embedder_before_becomes_the_former_one_and_back() -> None:
    changed = declaring(declaring(ModeDeclarations(), "a"), "b")
    assert embedders(changed) == ("b", "a")
    assert embedders(declaring(changed, "b")) == ("b", "a")
    assert embedders(declaring(changed, "a")) == ("a", "b")
    assert embedders(declaring(changed, "a", former_serves=True)) == ("a", "b")


@pytest.mark.parametrize(("former_serves", "former"), [(True, "a"), (False, "b")])
def test_third_embedder_follows_the_one_that_serves(former_serves: bool, former: str) -> None:
    changed = declaring(declaring(ModeDeclarations(), "a"), "b")
    assert embedders(declaring(changed, "c", former_serves=former_serves)) == ("c", former)


@pytest.mark.parametrize(("embedder", "former"), [("b", "a"), ("a", "b"), ("c", "b")])
def test_declaration_for_a_project_takes_the_former_embedder_of_the_users_over(embedder: str, former: str) -> None:
    users = declaring(declaring(ModeDeclarations(), "a"), "b")
    assert embedders(declaring(users, embedder, for_project=True)) == (embedder, former)


def test_roll_back_restores_the_prefixes_unless_others_are_given() -> None:
    changed = declaring(declaring(ModeDeclarations(), "a"), "b", passage_prefix="passage: ", query_prefix="query: ")
    assert code(changed).passage_prefix == "passage: "
    back = code(declaring(changed, "a"))
    assert (back.passage_prefix, back.query_prefix) == (None, None)
    assert code(declaring(changed, "a", query_prefix="q: ")).query_prefix == "q: "


def test_drop_and_rename_forget_the_former_embedder() -> None:
    changed = declaring(declaring(ModeDeclarations(), "a"), "b")
    assert embedders(drop_former(changed, code(changed))) == ("b", None)
    renamed, mode = rename_mode(changed, RenameMode(name="code", new_name="craft"), "default")
    assert mode.former is None
    assert renamed.find("craft", None) == mode


def columns_of(*memories: Memory) -> MemoryColumns:
    traits: dict[Trait, int] = {}
    rows = []
    for number, one in enumerate(memories):
        document = LexicalDocument(one)
        key = traits.setdefault(document.trait, len(traits))
        held = " ".join(one.embedding.searchable_beside)
        rows.append(MemoryRow(number, one.memory_id, key, 0, number, 3, 0.5, False, one.embedding.space, held=held))
    return MemoryColumns(rows, {key: trait for trait, key in traits.items()})


OLD = embedded_in("a", "code", "stale").model_copy(update={"held": ("a",)})
NEW = embedded_in("b", "code").model_copy(update={"held": ("a",)})
READY_BEFORE = embedded_in("a", "code")
FAILED = NEW.model_copy(update={"status": "failed"})
BOTH = OLD.model_copy(update={"held": ("b", "a")})


@pytest.mark.parametrize(
    ("embeddings", "digest", "expected"),
    [
        ([OLD, NEW], "b", True),
        ([NEW, NEW], "b", False),
        ([READY_BEFORE], "b", True),
        ([NEW, Embedding()], "b", False),
        ([NEW, FAILED], "b", False),
        ([BOTH], "b", False),
        ([OLD, NEW], None, True),
        ([NEW, READY_BEFORE], None, False),
        ([], "b", False),
    ],
)
def test_former_serves_while_a_memory_has_its_vector_alone(
    embeddings: list[Embedding], digest: str | None, expected: bool
) -> None:
    declared = declaring(declaring(ModeDeclarations(), "a"), "b")
    columns = columns_of(*(made("x", number, mode="code", embedding=one) for number, one in enumerate(embeddings)))
    assert awaits_declared(columns, declared, code(declared), digest) is expected


def test_memories_of_a_project_with_its_own_mode_do_not_count() -> None:
    declared = declaring(declaring(ModeDeclarations(), "a"), "b")
    own = code(declared).model_copy(update={"project": "p1", "embedder": "a", "former": None})
    declared = declared.model_copy(update={"modes": (*declared.modes, own)})
    columns = columns_of(made("x", 0, mode="code", project="p1", embedding=READY_BEFORE))
    assert not awaits_declared(columns, declared, code(declared), "b")
