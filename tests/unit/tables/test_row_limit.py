"""The limit of a table's row, its cache in bytes, and the models that are rows."""

from datetime import UTC, datetime

import faust
import pytest
from modestream_client.arguments import DeclareMode, DeleteMode, RenameMode

from agents.rules.memory.versions import MAX_VERSIONS, identify_turn, next_memory
from agents.rules.memory.visibility import build_memory_view
from agents.rules.modes.declaring import (
    MAX_DELETED_MODES,
    MAX_FORMER_MODE_NAMES,
    MAX_MODES_PER_SCOPE,
    declare_mode,
    delete_mode,
    rename_mode,
)
from schemas.failures import Rejected, RowTooLarge
from schemas.internal.changes import MAX_ISSUED_BYTES, MAX_PAGE_ITEMS, Change, IssuedCommands
from schemas.scopes import Scope
from schemas.state.memories import CategoryAssignment
from schemas.state.modes import EmbedderDescription, Mode, ModeDeclarations
from streams.runtime.awaited_table import MAX_ROW_BYTES, limit_row
from streams.tables.json_table import MAX_PARSED_BYTES, JsonTable, ParsedValueCache
from tests.builders.turns import turn
from tests.fakes.tables.table_store import dict_store

EMBEDDER = EmbedderDescription(name="general", dim=384)
SCOPE = Scope(user_id="ana")


def test_row_beyond_the_limit_is_refused_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    app = faust.App("test", broker="kafka://nowhere:1", store="memory://")
    table = JsonTable[str, ModeDeclarations](app, "modes", ModeDeclarations, key=str)
    store = dict_store(table.table, monkeypatch)
    large = Mode(name="a", embedder="general", embedding_dim=384, description="\x01" * (MAX_ROW_BYTES // 6))
    with pytest.raises(RowTooLarge, match="MAX_ROW_BYTES") as refused:
        table.put(0, "ana", ModeDeclarations(modes=(large,)))
    assert refused.value.code == "too_large"
    assert store == {}
    assert table.pending_writes() == []


def test_cache_of_parsed_values_is_bounded_in_bytes() -> None:
    values = ParsedValueCache(len, max_values=1000)
    for number in range(12):
        assert values[b"%4d" % number * (256 * 1024)] == 2**20
    assert sum(map(len, values)) <= MAX_PARSED_BYTES


def test_modes_beyond_the_limit_are_refused_and_known_ones_can_change() -> None:
    declared = ModeDeclarations()
    for number in range(MAX_MODES_PER_SCOPE):
        declared = declare_mode(declared, DeclareMode(name=f"m{number}", embedder="general"), EMBEDDER, "p")
    with pytest.raises(Rejected, match="MAX_MODES_PER_SCOPE") as refused:
        declare_mode(declared, DeclareMode(name="more", embedder="general"), EMBEDDER, "p")
    assert refused.value.code == "too_large"
    declare_mode(declared, DeclareMode(name="m1", embedder="general", description="new"), EMBEDDER, "p")
    declare_mode(declared, DeclareMode(name="more", embedder="general", for_project=True), EMBEDDER, "p")


def test_histories_of_modes_are_bounded() -> None:
    declared = declare_mode(ModeDeclarations(), DeclareMode(name="a0", embedder="general"), EMBEDDER, "p")
    for number in range(2 * MAX_FORMER_MODE_NAMES):
        declared, mode = rename_mode(declared, RenameMode(name=f"a{number}", new_name=f"a{number + 1}"), "p")
    assert len(mode.formerly) == MAX_FORMER_MODE_NAMES
    for number in range(2 * MAX_DELETED_MODES):
        declared = declare_mode(declared, DeclareMode(name=f"d{number}", embedder="general"), EMBEDDER, "p")
        wanted = DeleteMode(name=f"d{number}", memories="forget")
        declared, _ = delete_mode(declared, wanted, "p")
    assert len(declared.deleted) == MAX_DELETED_MODES
    assert delete_mode(declared, wanted, "p")[0] == declared


def assigning(items: int) -> Change:
    names = tuple(CategoryAssignment(name=f"{number}" * 64, confidence=0.9) for number in range(8))
    assigned = {f"m{number:030}": names for number in range(items)}
    return Change(scope=SCOPE, action="assign", assigned=assigned, result={"name": "x"})


def test_issued_commands_stay_small_whatever_they_assign() -> None:
    issued, change = IssuedCommands(), assigning(2500)
    for number in range(64):
        issued = issued.with_change(f"{number}@1", change)
    assert len(issued.changes) == 64
    assert len(issued.model_dump_json()) < MAX_ISSUED_BYTES


def test_issued_answers_are_bounded_in_bytes_and_keep_the_last() -> None:
    issued = IssuedCommands()
    for number in range(64):
        issued = issued.with_answer(f"{number}@1", {"description": "x" * 50_000})
    assert len(issued.model_dump_json()) < MAX_ISSUED_BYTES + 1000
    assert "63@1" in issued.answered


def test_an_assigning_change_is_forwarded_in_pages_and_the_last_has_the_result() -> None:
    pages = list(assigning(2500).pages())
    assert [len(page.assigned) for page in pages] == [MAX_PAGE_ITEMS] * 5
    assert [page.result for page in pages] == [{}] * 4 + [{"name": "x"}]
    assert {each for page in pages for each in page.assigned} == assigning(2500).assigned.keys()
    assert max(len(page.model_dump_json()) for page in pages) < MAX_ROW_BYTES
    assert [page.assigned for page in assigning(0).pages()] == [{}]


def test_edits_of_one_turn_keep_the_latest_texts_and_count_all() -> None:
    memory, count = None, 3 * MAX_VERSIONS
    for offset in range(count):
        published = turn(content=f"Draft {offset}", turn_id="t1")
        identity = identify_turn(published, datetime.fromtimestamp(offset, UTC))
        memory = next_memory(published, identity, memory, ("general", "fallback"), offset, asks_model=False)
    assert memory is not None
    assert len(memory.versions) == MAX_VERSIONS
    assert memory.version == count
    assert [each["version"] for each in build_memory_view(memory)["versions"] if each["current"]] == [count]


def test_row_beyond_the_limit_is_refused() -> None:
    limit_row("modes", b"x" * MAX_ROW_BYTES)
    with pytest.raises(RowTooLarge):
        limit_row("modes", b"x" * (MAX_ROW_BYTES + 1))
