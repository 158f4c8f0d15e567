"""`ObjectBytes` over a folder and over a bucket: the same suite."""

import asyncio
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.adapters.files.object_bytes import ObjectBytes
from tests.fakes.object_store import bucket_served


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectBytes]:
    if request.param == "folder":
        yield ObjectBytes(str(tmp_path / "files"))
        return
    with bucket_served() as url:
        for name, value in (("ENDPOINT_URL", url), ("ALLOW_HTTP", "true"), ("REGION", "us-east-1")):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
        yield ObjectBytes("s3://bucket/some/prefix")


async def content(store: ObjectBytes, *keys: str) -> bytes:
    return b"".join([piece async for piece in store.read(*keys)])


@pytest.mark.parametrize("size", [0, 7, 12_000_000])
async def test_bytes_come_back_as_they_were(store: ObjectBytes, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    await store.put("a/b/c", io.BytesIO(body[:size]))
    assert await content(store, "a/b/c") == body[:size]


async def test_what_lies_under_a_prefix_is_found(store: ObjectBytes) -> None:
    for key in ("a/b/c", "a/b/d", "a/bb/e"):
        await store.put(key, io.BytesIO(b"12"))
    assert sorted((found.key, found.size) for found in await store.find("a/b/")) == [("a/b/c", 2), ("a/b/d", 2)]


async def test_nothing_lies_where_nothing_was_put(store: ObjectBytes) -> None:
    assert await store.find("a/") == []


async def test_missing_bytes_are_not_found(store: ObjectBytes) -> None:
    with pytest.raises(FileNotFoundError):
        await content(store, "a/b/c")


async def test_bytes_are_read_under_the_first_key_that_has_any(store: ObjectBytes) -> None:
    await store.put("a/b/d", io.BytesIO(b"12"))
    assert await content(store, "a/b/c", "a/b/d") == b"12"


async def test_bytes_are_replaced(store: ObjectBytes) -> None:
    for body in (b"first", b"2nd"):
        await store.put("a/b/c", io.BytesIO(body))
    assert await content(store, "a/b/c") == b"2nd"


async def test_a_missing_one_keeps_no_other_from_being_removed(store: ObjectBytes) -> None:
    await store.put("a/b/c", io.BytesIO(b"12"))
    await store.remove(["a/b/none", "a/b/c"])
    assert await store.find("a/") == []


WRITER = """
import asyncio, sys, tempfile
from streams.adapters.files.object_bytes import ObjectBytes

with tempfile.TemporaryFile() as content:
    content.truncate(1 << 40)  # it is written until this process is killed
    asyncio.run(ObjectBytes(sys.argv[1]).put("a/b/c", content))
"""


async def test_what_a_killed_writer_leaves_in_a_folder_is_found_apart_and_removed(tmp_path: Path) -> None:
    store = ObjectBytes(str(tmp_path / "files"))
    writer = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(tmp_path / "files"))
    async with asyncio.timeout(60):
        while not (left := await store.unfinished("a/")):
            await asyncio.sleep(0.01)
    writer.kill()
    await writer.wait()
    assert await store.find("a/") == []
    await store.remove([found.key for found in left])
    assert list((tmp_path / "files").rglob("*")) == []


async def test_a_whole_file_is_not_unfinished(store: ObjectBytes) -> None:
    await store.put("a/b/c", io.BytesIO(b"12"))
    assert await store.unfinished("a/") == []
