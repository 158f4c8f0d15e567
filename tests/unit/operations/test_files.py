import hashlib
import io
from pathlib import Path

import pytest

from operations.archive import InvalidBackup
from operations.backup import CopiedFiles, check_files, copy_files, fork_files
from operations.deployment import CurrentBoundaries
from schemas.messages.published import Boundary
from schemas.messages.records import Record
from schemas.state.files import file_key, upload_key
from streams.adapters.files.object_bytes import ObjectBytes


@pytest.fixture
def places(tmp_path: Path) -> tuple[ObjectBytes, ObjectBytes]:
    return ObjectBytes(str(tmp_path / "source")), ObjectBytes(str(tmp_path / "target"))


async def put(store: ObjectBytes, body: bytes, memory_id: str = "m1") -> str:
    key = upload_key("u1", hashlib.sha256(body).hexdigest(), memory_id, "first")
    await store.put(key, io.BytesIO(body))
    return key


async def keys(store: ObjectBytes) -> set[str]:
    return {found.key for found in await store.find("")}


async def test_what_is_missing_is_copied(places: tuple[ObjectBytes, ObjectBytes]) -> None:
    source, target = places
    await put(source, b"first")
    await copy_files(source, target)
    await put(source, b"second")
    assert await copy_files(source, target) == CopiedFiles(1, 1, 11)
    assert await check_files(target) == 2


async def test_what_was_forgotten_is_removed(places: tuple[ObjectBytes, ObjectBytes]) -> None:
    source, target = places
    gone, kept = await put(source, b"first", "m1"), await put(source, b"second", "m2")
    await copy_files(source, target)
    await source.remove([gone])
    await copy_files(source, target, forgotten={"m1"})
    assert await keys(target) == {kept}


async def test_a_lost_source_takes_nothing_from_a_backup(places: tuple[ObjectBytes, ObjectBytes]) -> None:
    source, target = places
    key = await put(source, b"first")
    await copy_files(source, target)
    await source.remove([key])
    await copy_files(source, target)
    assert await keys(target) == {key}


async def test_other_bytes_than_a_name_says_are_no_backup(places: tuple[ObjectBytes, ObjectBytes]) -> None:
    source, target = places
    await target.put(await put(source, b"first"), io.BytesIO(b"other"))
    with pytest.raises(InvalidBackup):
        await check_files(target)


def record(key: str, value: bytes | None) -> Record:
    return Record("memory.boundaries", 0, 0, 0, key.encode(), value)


def boundary(name: str, memories: int) -> bytes:
    return Boundary(boundary=name, scope={"user_id": name}, memories=memories).model_dump_json(by_alias=True).encode()


def test_last_value_of_a_user_counts_and_tombstones_remove() -> None:
    current = CurrentBoundaries()
    for arrived in (record("a", boundary("a", 1)), record("b", boundary("b", 1)), record("a", boundary("a", 2))):
        current.take(arrived)
    current.take(record("b", None))
    current.take(record("c", b"no JSON"))
    assert {key: summary.memories for key, summary in current.by_key.items()} == {b"a": 2}


async def test_fork_has_the_files_of_its_turns_under_its_own_key(places: tuple[ObjectBytes, ObjectBytes]) -> None:
    files, _ = places
    of_user = [await put(files, b"first", "m1"), await put(files, b"second", "m2")]
    await fork_files(files, "u1", "u1-trial", {"m1": "n1"})
    forked = file_key("u1-trial", hashlib.sha256(b"first").hexdigest(), "n1")
    assert await keys(files) == {*of_user, forked}


async def test_file_is_forked_once(places: tuple[ObjectBytes, ObjectBytes]) -> None:
    files, _ = places
    await put(files, b"first", "m1")
    await fork_files(files, "u1", "u1-trial", {"m1": "n1"})
    assert await fork_files(files, "u1", "u1-trial", {"m1": "n1"}) == 0
