"""An export is imported from its path, the same over each transport."""

import json
from pathlib import Path
from typing import Any

import pytest
from modestream_client import MemoryCalls
from modestream_client.imports.publishing import Tally

Json = dict[str, Any]


def line(number: int, **fields: Any) -> Json:
    turn = {"schema": "turn.v1", "turn_id": f"t{number}", "scope": {"user_id": "other"}, "conversation_id": "c1"}
    return turn | {"role": "user", "content": f"remark {number}"} | fields


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return write(tmp_path, *map(line, range(3)))


def write(folder: Path, *lines: Json | str) -> Path:
    path = folder / "export.jsonl"
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    return path


async def texts(memory: MemoryCalls, **fields: Any) -> list[str | None]:
    return [turn.text async for turn in memory.iter_memories(order="oldest", types=["episodic"], **fields)]


async def test_every_line_is_a_turn_of_the_caller(memory: MemoryCalls, export: Path) -> None:
    done = await memory.import_export(export, "jsonl")
    assert done.stored == 3
    assert sorted(map(str, await texts(memory))) == ["remark 0", "remark 1", "remark 2"]


async def test_the_same_export_again_stores_nothing_again(memory: MemoryCalls, export: Path) -> None:
    await memory.import_export(export, "jsonl")
    again = await memory.import_export(export, "jsonl")
    assert again.stored == 0
    assert again.duplicate == 3


async def test_what_was_forgotten_stays_forgotten(memory: MemoryCalls, export: Path) -> None:
    await memory.import_export(export, "jsonl")
    await memory.forget(turn_id="t1", conversation_id="c1")
    again = await memory.import_export(export, "jsonl")
    assert again.duplicate == 2
    assert again.forgotten == 1
    assert again.stored == 0


async def test_a_broken_line_is_named_by_its_number(memory: MemoryCalls, tmp_path: Path) -> None:
    export = write(tmp_path, line(0), "{", line(1, role="pope"), line(2))
    done = await memory.import_export(export, "jsonl")
    assert [(problem.place, problem.code) for problem in done.problems] == [(2, "invalid_json"), (3, "invalid_value")]
    assert done.stored == 2


async def test_lines_keep_their_project(memory: MemoryCalls, tmp_path: Path) -> None:
    await memory.import_export(write(tmp_path, line(0, scope={"user_id": "x", "project_id": "p2"})), "jsonl")
    assert await texts(memory, projects="p2") == ["remark 0"]


async def test_a_project_that_is_named_is_that_of_all_lines(memory: MemoryCalls, tmp_path: Path) -> None:
    export = write(tmp_path, line(0, scope={"user_id": "x", "project_id": "p2"}))
    await memory.import_export(export, "jsonl", project_id="p3")
    assert await texts(memory, projects="p3") == ["remark 0"]


async def test_a_part_gets_the_mode_that_is_chosen_for_it(memory: MemoryCalls, tmp_path: Path) -> None:
    await memory.declare_mode("journal", "general")
    export = write(tmp_path, line(0), line(1, conversation_id="diary"))
    await memory.import_export(export, "jsonl", mode_for=["conversation:diary=journal"])
    assert await texts(memory, mode="journal") == ["remark 1"]


async def test_progress_is_told(memory: MemoryCalls, export: Path) -> None:
    seen: list[Tally] = []
    await memory.import_export(export, "jsonl", on_progress=seen.append)
    assert seen


async def test_a_file_of_another_format_is_refused(memory: MemoryCalls, export: Path) -> None:
    with pytest.raises(Exception, match="this is no"):
        await memory.import_export(export, "chatgpt")
