import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.rules.memory.versions import identify_turn
from operations import archive
from operations.archive import BackupLogs, BackupWriter, InvalidBackup, Manifest, digest_of, line_of, record_in
from operations.copy.copier import NOTHING
from operations.copy.entry_builder import LOGS, EntryBuilder, Outcome
from schemas.internal.service import ServiceRecord
from schemas.messages.decoding import decode
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.scopes import Scope
from tests.fakes.copied_logs import FakeLogSource

SERVICE = ServiceRecord.of(Scope, 1, "memory.", ["turn.v1"])


def turn(text: str) -> bytes:
    scope = {"user_id": "ana"}
    base = {"schema": "turn.v1", "scope": scope, "conversation_id": "c", "role": "user", "content": text}
    return json.dumps(base).encode()


def filled(turns: int) -> FakeLogSource:
    source = FakeLogSource(1)
    for number in range(turns):
        source.add("turns", 0, 1000 + number, "ana", turn(f"week {number}"))
    source.add("commands", 0, 1001, "ana", b"no JSON \xff\x00")
    return source


async def back_up(folder: Path, source: FakeLogSource, outcome: Outcome = NOTHING) -> BackupWriter:
    writer = BackupWriter(folder, source, SERVICE, EntryBuilder(1, Scope, Scope, outcome.forgotten))
    await writer.write(outcome, lambda _done, _total: None)
    return writer


async def read_all(folder: Path) -> list[Record]:
    logs = BackupLogs(folder)
    found: list[Record] = []
    for place, end in (await logs.ends()).items():
        offset = 0
        while offset < end:
            records, offset = await logs.read(place, offset, 2)
            found += records
    return found


@pytest.mark.parametrize("key", [None, b"", b"ana", b"\xff\x00", "é/%".encode()])
@pytest.mark.parametrize("value", [None, b"{}", b"\n\r\xe2\x80\xa8", b"\x80"])
def test_record_comes_back_from_its_line(key: bytes | None, value: bytes | None) -> None:
    record = Record("turns", 3, 17, 1_780_000_000_123, key, value, (("a", b"\xff"), ("a", None), ("é", b"")))
    line = line_of(record)
    assert line.count(b"\n") == 1
    assert len(line.splitlines()) == 1
    assert record_in(line, "turns", 3) == record


async def test_backup_reads_as_the_logs_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "SEGMENT_RECORDS", 4)
    source = filled(11)
    source.revised = [Record("pipelines", 0, 0, 5, b"1-a", b"{}")]
    outcome = Outcome(frozenset({"x"}), frozenset({"d"}), {0: 3})
    await back_up(tmp_path, source, outcome)
    BackupLogs(tmp_path).check()
    assert await read_all(tmp_path) == [record for log in LOGS for record in source.logs[log, 0]]
    assert await BackupLogs(tmp_path).outcome() == outcome
    assert await BackupLogs(tmp_path).revisions() == source.revised
    assert len([*BackupLogs(tmp_path).manifest.of(("turns", 0))]) == 2


async def test_next_backup_writes_what_is_new(tmp_path: Path) -> None:
    source = filled(3)
    await back_up(tmp_path, source)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.jsonl.gz")}
    source.add("turns", 0, 2000, "ana", turn("later"))
    assert (await back_up(tmp_path, source)).written == 1
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert len(await read_all(tmp_path)) == 5


async def test_backup_that_is_killed_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "SEGMENT_RECORDS", 2)
    source, saved = filled(9), 0
    save = Manifest.save

    def dying(manifest: Manifest, folder: Path) -> None:
        nonlocal saved
        saved += 1
        if saved % 2 == 0:
            raise KeyboardInterrupt
        save(manifest, folder)

    with monkeypatch.context() as patched:
        patched.setattr(Manifest, "save", dying)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                await back_up(tmp_path, source)
    with pytest.raises(InvalidBackup, match="no whole backup"):
        BackupLogs(tmp_path)
    await back_up(tmp_path, source)
    BackupLogs(tmp_path).check()
    assert await read_all(tmp_path) == [record for log in LOGS for record in source.logs[log, 0]]


async def test_forgotten_turn_is_backed_up_without_what_was_said(tmp_path: Path) -> None:
    source = filled(2)
    record = source.logs["turns", 0][1]
    identity = identify_turn(decode(record.value, {"turn.v1": Turn}), moment_of(record.timestamp_ms))
    await back_up(tmp_path, source, Outcome(frozenset({identity.memory_id})))
    first, second, _ = await read_all(tmp_path)
    assert first == source.logs["turns", 0][0]
    assert b"week 1" not in (second.value or b"")
    assert replace(second, value=record.value) == record


async def test_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    await back_up(tmp_path, filled(2))
    [file] = tmp_path.glob("turns-*")
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(InvalidBackup, match=f"{file.name} is damaged"):
        BackupLogs(tmp_path).check()
    file.unlink()
    with pytest.raises(InvalidBackup, match=f"{file.name} can't be read"):
        BackupLogs(tmp_path).check()


async def test_backup_of_another_deployment_is_not_continued(tmp_path: Path) -> None:
    await back_up(tmp_path, filled(2))
    other = ServiceRecord.of(Scope, 2, "memory.", ["turn.v1"])
    with pytest.raises(InvalidBackup, match="partitions is 1 there and 2 here"):
        BackupWriter(tmp_path, filled(2), other, EntryBuilder(2, Scope, Scope))


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None], *, signed: bool = True) -> Path:
    """Change the manifest of a backup, with the digest that fits if `signed`."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    if signed:
        manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))
    return folder


async def test_a_manifest_that_lacks_its_last_segment_is_found(tmp_path: Path) -> None:
    await back_up(tmp_path, filled(3))
    with pytest.raises(InvalidBackup, match="changed after it was written"):
        BackupLogs(rewritten(tmp_path, lambda manifest: manifest["segments"].pop(), signed=False))


async def test_a_manifest_without_its_digest_is_refused(tmp_path: Path) -> None:
    await back_up(tmp_path, filled(3))
    with pytest.raises(InvalidBackup, match="changed after it was written"):
        BackupLogs(rewritten(tmp_path, lambda manifest: manifest.pop("digest"), signed=False))


async def test_a_field_of_a_later_release_is_part_of_the_digest(tmp_path: Path) -> None:
    await back_up(tmp_path, filled(3))
    BackupLogs(rewritten(tmp_path, lambda manifest: manifest.update(compression={"of": ["zstd"]}))).check()


async def test_a_changed_field_of_a_later_release_is_found(tmp_path: Path) -> None:
    await back_up(tmp_path, filled(3))
    rewritten(tmp_path, lambda manifest: manifest.update(compression="zstd"))
    with pytest.raises(InvalidBackup, match="changed after it was written"):
        BackupLogs(rewritten(tmp_path, lambda manifest: manifest.update(compression="gzip"), signed=False))


@pytest.mark.parametrize("partition", [-1, 1, 99])
async def test_a_segment_of_a_partition_that_is_not_there_is_found(tmp_path: Path, partition: int) -> None:
    await back_up(tmp_path, filled(3))
    rewritten(tmp_path, lambda manifest: manifest["segments"][0].update(partition=partition))
    with pytest.raises(InvalidBackup, match=f"partition {partition}"):
        BackupLogs(tmp_path)


@pytest.mark.parametrize("file", ["../evil.gz", "/etc/passwd", "..", "a/b", ""])
async def test_a_file_outside_of_the_folder_is_refused(tmp_path: Path, file: str) -> None:
    await back_up(tmp_path, filled(3))
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    manifest["segments"][0]["file"] = file
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidBackup, match=r"segments\.0\.file"):
        BackupLogs(tmp_path)


@pytest.mark.parametrize(
    "wrong", [{"records": 2}, {"next": 2}, {"next": 0}], ids=["fewer records", "ends before its last", "ends at 0"]
)
async def test_a_segment_with_other_records_than_the_manifest_says_is_found(
    tmp_path: Path, wrong: dict[str, int]
) -> None:
    await back_up(tmp_path, filled(3))
    rewritten(tmp_path, lambda manifest: manifest["segments"][0].update(wrong))
    with pytest.raises(InvalidBackup, match="turns-0-"):
        BackupLogs(tmp_path).check()


async def test_a_backup_of_another_digest_is_refused(tmp_path: Path) -> None:
    await back_up(tmp_path, filled(3))
    with pytest.raises(InvalidBackup, match="is not the backup"):
        BackupLogs(tmp_path, digest="0" * 64)


async def test_a_backup_of_its_digest_is_read(tmp_path: Path) -> None:
    writer = await back_up(tmp_path, filled(3))
    BackupLogs(tmp_path, digest=writer.manifest.digest).check()
