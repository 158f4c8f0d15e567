"""Readers of exports: lines of turns, mem0, what all formats share, and hostile files."""

import io
import json
import time
import zipfile
from typing import Any

import pytest
from modestream_client.imports import Message, NotOfFormat, Problem, reading, sources, zone_of
from modestream_client.imports.reading import MAX_CONTENT_CHARS, MoreProblems

from tests.builders.exports import HOSTILE, a_turn, claude, read, remembered, turn_line, turns, zipped


def test_lines_of_turns_are_kept_as_they_are() -> None:
    kept = {"turn_id": "t", "mode": "work", "speaker": "Ana", "metadata": {"n": 1}, "private": True}
    [turn] = turns((turn_line(**kept),), "jsonl")
    assert {name: turn[name] for name in kept} == kept


def test_a_memory_of_mem0_is_a_turn() -> None:
    memory = {"id": "m1", "memory": "Ana sails.", "created_at": "2026-03-05T00:01:00-08:00", "run_id": "r1"}
    [turn] = turns({"results": [memory]}, "mem0")
    kept = {name: turn[name] for name in ("turn_id", "conversation_id", "content", "occurred_at")}
    assert kept == {
        "turn_id": "m1",
        "conversation_id": "r1",
        "content": "Ana sails.",
        "occurred_at": "2026-03-05T08:01:00Z",
    }


@pytest.mark.parametrize("end", ["-part-2", "-part-3"])
def test_a_long_message_is_several_turns(end: str) -> None:
    parts = turns(claude(text="word " * (MAX_CONTENT_CHARS // 2)), "claude")
    assert f"m1{end}" in [part["turn_id"] for part in parts]
    assert sum(part["content"].count("word") for part in parts) == MAX_CONTENT_CHARS // 2


def test_names_of_a_part_are_those_that_modes_are_chosen_by() -> None:
    [entry] = read(claude(), "claude")
    assert isinstance(entry, Message)
    assert entry.belongs_to["conversation"] == "Boats"


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b""])
def test_the_mark_of_utf8_is_no_part_of_an_export(start: bytes) -> None:
    assert len(turns(start + json.dumps(claude()).encode(), "claude")) == 1


def test_what_breaks_off_keeps_what_was_whole() -> None:
    whole = json.dumps(claude()).encode()
    entries = read(whole[:-1] + b", " + whole[1:40], "claude")
    assert [type(entry) for entry in entries] == [Message, Problem]


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        zone_of("Atlantis/Capital")


@pytest.mark.parametrize(
    "export_format",
    ["chatgpt", "claude", "claude-code", "codex", "slack", "whatsapp", "telegram", "mbox", "jsonl", "mem0"],
)
@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff" * 900, b"<!doctype html><p>Sign in.</p>", b"[]", b'{"a": ' * 5000, b"[" * 100_000]
)
def test_another_file_is_refused(export_format: str, content: bytes) -> None:
    with pytest.raises(NotOfFormat, match="this is no"):
        read(content, export_format)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_takes_time_that_grows_with_its_length(name: str) -> None:
    export_format, content = HOSTILE[name]
    began = time.process_time()
    read(content, export_format)
    assert time.process_time() - began < 10


def test_a_line_that_is_too_long_costs_the_next_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1000)
    entries = read((turn_line(), turn_line(content="x" * 5000), turn_line()), "jsonl")
    assert [entry.place for entry in entries if not isinstance(entry, MoreProblems)] == [1, 2, 3]
    assert isinstance(entries[1], Problem)


def test_a_conversation_that_is_too_large_costs_the_next_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_VALUE_CHARS", 5000)
    entries = read(claude(text="x" * 9000) + claude(), "claude")
    assert [type(entry) for entry in entries] == [Problem, Message]


def test_problems_beyond_those_that_are_named_are_counted_together() -> None:
    entries = read((turn_line(), *({"schema": "other"} for _ in range(1150)), turn_line()), "jsonl")
    assert [entry.count for entry in entries if isinstance(entry, MoreProblems)] == [1000, 50]


def test_a_zip_that_unpacks_to_too_much_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_UNPACKED_BYTES", 2000)
    monkeypatch.setattr(sources, "PARSED_BYTES", 100)
    entries = read(zipped(**{"conversations.json": claude() + claude(text="x" * 5000)}), "claude")
    assert [type(entry) for entry in entries] == [Message, Problem]


@pytest.mark.parametrize(
    ("export", "export_format"),
    [
        ((a_turn("t1", content="half \ud83d"), a_turn("t2")), "jsonl"),
        ((a_turn("t1", metadata={"\ud83d": 1}), a_turn("t2")), "jsonl"),
        ([remembered("m1"), remembered("m2")], "mem0"),
    ],
)
def test_a_hostile_message_costs_the_others_nothing(export: Any, export_format: Any) -> None:
    assert len([reading.entry_line(entry) for entry in read(export, export_format)]) == 2


def test_a_line_that_is_no_utf_8_is_a_problem() -> None:
    line = json.dumps(a_turn("t1", content="A")).encode().replace(b"A", b"\xed\xa0\x80")
    [problem, _] = read(line + b"\n" + json.dumps(a_turn("t2")).encode(), "jsonl")
    assert isinstance(problem, Problem)


def test_a_number_of_thousands_of_digits_is_told() -> None:
    export = json.dumps([remembered("m1", metadata={"n": 7777})]).replace("7777", "7" * 5000)
    with pytest.raises(NotOfFormat):
        read(export.encode(), "mem0")


def test_the_place_of_a_problem_is_short() -> None:
    [_, problem] = read([remembered("m1"), remembered("m" * 10**6, memory=7)], "mem0")
    assert len(reading.entry_line(problem)) < 1000


def test_a_damaged_member_is_a_problem() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as target:
        target.writestr("conversations.json", "[" + " " * 10000 + "]")
    with pytest.raises(NotOfFormat):
        read(made.getvalue().replace(b"\x5d\x00", b"\xff\xff", 1), "chatgpt")
