"""The mode of a turn on its arrival, and after a language model's answer."""

from typing import Any, NamedTuple

import pytest
from modestream_client.arguments import DeclareMode, RenameMode
from modestream_client.vocabulary import ModeSource

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow, Trait
from agents.rules.modes.declaring import (
    ModeChoice,
    awaits_declared,
    declare_mode,
    drop_former,
    mode_after_answer,
    mode_on_arrival,
    rename_mode,
)
from schemas.failures import Rejected
from schemas.state.memories import Embedding, Memory
from schemas.state.modes import GENERAL, EmbedderDescription, Mode, ModeDeclarations
from tests.builders.memories import embedded_in, made

CODE = Mode(name="code", embedder="code", embedding_dim=768)
JOURNAL = Mode(name="journal", embedder="journal", embedding_dim=768, formerly=("diary", "notes"))
LOCAL = Mode(name="local", embedder="general", embedding_dim=384, project="p1")
MODES = (CODE, JOURNAL, LOCAL)
USERS = ModeDeclarations(modes=MODES, user_default="code")
BOTH = ModeDeclarations(modes=MODES, user_default="code", project_defaults={"p1": "journal"})
NONE = ModeDeclarations(modes=MODES)
NOTHING = ModeDeclarations()


class Arrival(NamedTuple):
    """An arriving turn: the requested mode, the declarations, and the current mode if it is an edit."""

    why: str
    asked: str | None
    declared: ModeDeclarations
    stands: ModeChoice | None
    expected: ModeChoice
    project: str = "p1"


ARRIVALS = [
    Arrival("no mode is given or declared", None, NOTHING, None, (GENERAL, "fallback")),
    Arrival("declared modes alone decide nothing", None, NONE, None, (GENERAL, "fallback")),
    Arrival("the user's default", None, USERS, None, ("code", "user_default")),
    Arrival("the project's default before the user's", None, BOTH, None, ("journal", "project_default")),
    Arrival("another project has the user's default", None, BOTH, None, ("code", "user_default"), "p2"),
    Arrival("the caller before all defaults", "local", BOTH, None, ("local", "caller")),
    Arrival("the caller's general is not the fallback", GENERAL, BOTH, None, (GENERAL, "caller")),
    Arrival("an edit keeps what the caller said", None, BOTH, ("code", "caller"), ("code", "caller")),
    Arrival("an edit keeps a correction, which is a caller's", None, BOTH, ("local", "caller"), ("local", "caller")),
    Arrival("an edit keeps what a model said", None, BOTH, ("local", "model"), ("local", "model")),
    Arrival("an edit's caller before what stands", "code", BOTH, ("journal", "caller"), ("code", "caller")),
    Arrival("an edit's caller before a model", "code", BOTH, ("journal", "model"), ("code", "caller")),
    Arrival("an edit has today's default", None, BOTH, ("code", "user_default"), ("journal", "project_default")),
    Arrival(
        "an edit has a default in place of the fallback", None, USERS, (GENERAL, "fallback"), ("code", "user_default")
    ),
    Arrival("an edit loses a default that is gone", None, NONE, ("code", "user_default"), (GENERAL, "fallback")),
    Arrival("what stands is gone: the default", None, BOTH, ("gone", "caller"), ("journal", "project_default")),
    Arrival("what a model said is gone: the default", None, USERS, ("gone", "model"), ("code", "user_default")),
    Arrival("what stands is another project's", None, USERS, ("local", "model"), ("code", "user_default"), "p2"),
    Arrival("a model's general stands", None, BOTH, (GENERAL, "model"), (GENERAL, "model")),
]


@pytest.mark.parametrize("case", ARRIVALS, ids=[case.why for case in ARRIVALS])
def test_mode_on_arrival(case: Arrival) -> None:
    before = None if case.stands is None else memory_in(*case.stands)
    assert mode_on_arrival(case.asked, case.project, case.declared, before) == case.expected


class Answer(NamedTuple):
    why: str
    stands: ModeChoice
    answered: str | None
    expected: ModeChoice
    project: str = "p1"
    declared: ModeDeclarations = BOTH


ANSWERS = [
    Answer("a model before the project's default", ("journal", "project_default"), "code", ("code", "model")),
    Answer("a model before the user's default", ("code", "user_default"), "local", ("local", "model")),
    Answer("a model before the fallback", (GENERAL, "fallback"), "code", ("code", "model")),
    Answer("a model that agrees has decided", ("journal", "project_default"), "journal", ("journal", "model")),
    Answer("a model's later answer before its first", ("code", "model"), "journal", ("journal", "model")),
    Answer("a model may say general", ("journal", "project_default"), GENERAL, (GENERAL, "model")),
    Answer("the caller stays", ("code", "caller"), "journal", ("code", "caller")),
    Answer("the caller stays in a mode that is gone", ("gone", "caller"), "journal", ("gone", "caller")),
    Answer("no answer", ("code", "user_default"), None, ("code", "user_default")),
    Answer("an empty answer", ("code", "user_default"), "", ("code", "user_default")),
    Answer("a mode that is not declared", ("code", "user_default"), "poetry", ("code", "user_default")),
    Answer("a mode in other letters", ("code", "user_default"), "Journal", ("code", "user_default")),
    Answer("every mode at once", ("code", "user_default"), "*", ("code", "user_default")),
    Answer("another project's mode", ("code", "user_default"), "local", ("code", "user_default"), "p2"),
    Answer("no answer leaves a model's", ("code", "model"), "poetry", ("code", "model")),
    Answer("the name that the mode had", ("code", "user_default"), "diary", ("journal", "model")),
    Answer("a name that it had before that", (GENERAL, "fallback"), "notes", ("journal", "model")),
    Answer("the name that the mode had, after the caller", ("code", "caller"), "diary", ("code", "caller")),
]


@pytest.mark.parametrize("case", ANSWERS, ids=[case.why for case in ANSWERS])
def test_mode_after_answer(case: Answer) -> None:
    assert mode_after_answer(memory_in(*case.stands), case.answered, case.project, case.declared) == case.expected


def test_redeclared_name_is_the_new_mode() -> None:
    diary = Mode(name="diary", embedder="general", embedding_dim=384)
    declared = ModeDeclarations(modes=(JOURNAL, diary))
    assert mode_after_answer(memory_in(GENERAL, "fallback"), "diary", "p1", declared) == ("diary", "model")


def test_former_name_of_another_projects_mode_is_ignored() -> None:
    elsewhere = ModeDeclarations(modes=(LOCAL.model_copy(update={"formerly": ("here",)}),))
    assert mode_after_answer(memory_in(GENERAL, "fallback"), "here", "p2", elsewhere) == (GENERAL, "fallback")
    assert mode_after_answer(memory_in(GENERAL, "fallback"), "here", "p1", elsewhere) == ("local", "model")


@pytest.mark.parametrize("asked", ["", "General", "poetry", "general ", "*", "diary", "x" * 10_000])
@pytest.mark.parametrize("stands", [None, ("code", "caller"), ("code", "model")])
def test_undeclared_mode_is_refused(asked: str, stands: ModeChoice | None) -> None:
    before = None if stands is None else memory_in(*stands)
    with pytest.raises(Rejected) as refused:
        mode_on_arrival(asked, "p1", BOTH, before)
    assert refused.value.code == "unknown_mode"
    assert refused.value.field == "mode"


def test_a_mode_of_another_project_is_refused() -> None:
    with pytest.raises(Rejected, match="unknown_mode"):
        mode_on_arrival("local", "p2", BOTH, None)


def test_refusal_truncates_the_name() -> None:
    with pytest.raises(Rejected) as refused:
        mode_on_arrival("x" * 10_000, "p1", BOTH, None)
    assert len(refused.value.message) < 300


def memory_in(mode: str, source: ModeSource) -> Memory:
    return made("violin", mode=mode, mode_source=source)


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
    assert back.passage_prefix is None
    assert back.query_prefix is None
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
    for number, memory in enumerate(memories):
        document = LexicalDocument(memory)
        key = traits.setdefault(document.trait, len(traits))
        held = " ".join(memory.embedding.searchable_beside)
        rows.append(
            MemoryRow(number, memory.memory_id, key, 0, number, 3, 0.5, False, memory.embedding.space, held=held)
        )
    return MemoryColumns(rows, {key: trait for trait, key in traits.items()})


OLD = embedded_in("a", "code", "stale").model_copy(update={"held": ("a",)})
NEW = embedded_in("b", "code").model_copy(update={"held": ("a",)})
READY_BEFORE = embedded_in("a", "code")
FAILED = NEW.model_copy(update={"status": "failed"})
BOTH_SPACES = OLD.model_copy(update={"held": ("b", "a")})


@pytest.mark.parametrize(
    ("embeddings", "digest", "expected"),
    [
        ([OLD, NEW], "b", True),
        ([NEW, NEW], "b", False),
        ([READY_BEFORE], "b", True),
        ([NEW, Embedding()], "b", False),
        ([NEW, FAILED], "b", False),
        ([BOTH_SPACES], "b", False),
        ([OLD, NEW], None, True),
        ([NEW, READY_BEFORE], None, False),
        ([], "b", False),
    ],
)
def test_former_serves_while_a_memory_has_its_vector_alone(
    embeddings: list[Embedding], digest: str | None, expected: bool
) -> None:
    declared = declaring(declaring(ModeDeclarations(), "a"), "b")
    columns = columns_of(
        *(made("x", number, mode="code", embedding=embedding) for number, embedding in enumerate(embeddings))
    )
    assert awaits_declared(columns, declared, code(declared), digest) is expected


def test_memories_of_a_project_with_its_own_mode_do_not_count() -> None:
    declared = declaring(declaring(ModeDeclarations(), "a"), "b")
    own = code(declared).model_copy(update={"project": "p1", "embedder": "a", "former": None})
    declared = declared.model_copy(update={"modes": (*declared.modes, own)})
    columns = columns_of(made("x", 0, mode="code", project="p1", embedding=READY_BEFORE))
    assert not awaits_declared(columns, declared, code(declared), "b")
