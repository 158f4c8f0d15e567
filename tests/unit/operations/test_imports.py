"""`modestream import`: what a dry run tells, and where an interrupted import goes on."""

import json
from pathlib import Path
from typing import Any

import pytest

from operations import imports
from operations.imports import ImportOptions, import_chats
from streams.settings import Settings


def options(path: Path, **more: Any) -> ImportOptions:
    return ImportOptions("jsonl", (path,), "ana", **{"dry_run": True, **more})


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Three turns of two conversations, and a line that is broken."""
    turn = {"schema": "turn.v1", "scope": {"user_id": "x", "project_id": "boats"}, "role": "user", "content": "hi"}
    talks = ("diary", "diary", "plans")
    made = [
        turn | {"conversation_id": talk, "occurred_at": f"2026-03-0{day}T08:00:00Z"}
        for day, talk in enumerate(talks, 1)
    ]
    path = tmp_path / "export.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in made) + "{\n")
    return path


async def told(capsys: pytest.CaptureFixture[str], asked: ImportOptions, tmp_path: Path) -> tuple[int, str, str]:
    code = await import_chats(asked, Settings(data_dir=tmp_path))
    return code, *capsys.readouterr()


async def test_a_dry_run_counts(capsys: pytest.CaptureFixture[str], export: Path, tmp_path: Path) -> None:
    _, out, _ = await told(capsys, options(export), tmp_path)
    assert "messages: 3 (3 user), 1 broken" in out
    assert "from 2026-03-01T08:00:00Z to 2026-03-03T08:00:00Z" in out


async def test_a_dry_run_names_the_parts_that_modes_can_be_chosen_for(
    capsys: pytest.CaptureFixture[str], export: Path, tmp_path: Path
) -> None:
    _, out, _ = await told(capsys, options(export, mode_for=("conversation:diary=journal",)), tmp_path)
    assert "project:boats: 3" in out
    assert "conversation:diary: 2" in out
    assert "modes: 2 journal, 1 by the service" in out


async def test_what_is_broken_is_named_by_its_place(
    capsys: pytest.CaptureFixture[str], export: Path, tmp_path: Path
) -> None:
    code, _, err = await told(capsys, options(export), tmp_path)
    assert "4: invalid_json" in err
    assert code == 1


def journal(export: Path, tmp_path: Path, **more: Any) -> "imports._Journal":
    return imports._Journal(options(export, **more), export, Settings(data_dir=tmp_path))


def test_an_interrupted_import_has_its_tally(export: Path, tmp_path: Path) -> None:
    interrupted = journal(export, tmp_path)
    interrupted.tally.add("stored")
    interrupted.save()
    assert journal(export, tmp_path).tally == interrupted.tally


@pytest.mark.parametrize("other", [{"project": "p1"}, {"zone": "Europe/Berlin"}, {"mode_for": ("project:a=b",)}])
def test_another_import_of_the_same_file_begins_anew(export: Path, tmp_path: Path, other: dict[str, Any]) -> None:
    interrupted = journal(export, tmp_path)
    interrupted.tally.add("stored")
    interrupted.save()
    assert journal(export, tmp_path, **other).tally.read == 0


def test_a_later_export_of_the_same_name_begins_anew(export: Path, tmp_path: Path) -> None:
    interrupted = journal(export, tmp_path)
    interrupted.tally.add("stored")
    interrupted.save()
    with export.open("a") as file:
        file.write("{}\n")
    assert journal(export, tmp_path).tally.read == 0


def test_an_import_that_is_whole_leaves_no_journal(export: Path, tmp_path: Path) -> None:
    whole = journal(export, tmp_path)
    whole.save()
    whole.close()
    assert [*(tmp_path / "run").iterdir()] == []
