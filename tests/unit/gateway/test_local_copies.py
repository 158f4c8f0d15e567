import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.service.local_copies import LocalCopies


class Store:
    """Bytes that are counted when they are read."""

    def __init__(self, content: bytes = b"some file") -> None:
        self.content = content
        self.reads = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        self.reads += 1
        yield self.content[:4]
        yield self.content[4:]


async def lent(copies: LocalCopies, store: Store, name: str = "a") -> Path:
    async with copies.path(("ana", name), store.pieces()) as path:
        assert path.read_bytes() == store.content
    return path


async def test_a_file_is_read_once_for_all_its_pages() -> None:
    copies, store = LocalCopies(), Store()
    for _ in range(3):
        await lent(copies, store)
    assert store.reads == 1
    copies.close()


async def test_users_have_copies_apart() -> None:
    copies, store = LocalCopies(), Store()
    await lent(copies, store)
    async with copies.path(("ben", "a"), store.pieces()):
        pass
    assert store.reads == 2
    copies.close()


async def test_copies_are_bounded_and_the_least_lately_used_goes() -> None:
    copies, store = LocalCopies(max_bytes=20), Store()
    first, second = await lent(copies, store, "a"), await lent(copies, store, "b")
    await lent(copies, store, "a")
    third = await lent(copies, store, "c")
    assert [path.exists() for path in (first, second, third)] == [True, False, True]
    copies.close()


async def test_a_copy_in_use_stays() -> None:
    copies, store = LocalCopies(max_bytes=1), Store()
    async with copies.path(("ana", "a"), store.pieces()) as path:
        await lent(copies, store, "b")
        assert path.exists()
    assert not path.exists()


async def test_a_copy_goes_a_while_after_its_last_page() -> None:
    copies, store = LocalCopies(kept_s=0.01), Store()
    path = await lent(copies, store)
    await asyncio.sleep(0.1)
    assert not path.exists()


async def test_no_copy_is_left_at_the_end() -> None:
    copies = LocalCopies()
    path = await lent(copies, Store())
    copies.close()
    assert not path.exists()


async def test_a_store_that_fails_leaves_no_copy() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"some"
        raise FileNotFoundError

    copies, store = LocalCopies(), Store()
    with pytest.raises(FileNotFoundError):
        async with copies.path(("ana", "a"), pieces()):
            pass
    await lent(copies, store)
    assert store.reads == 1
    copies.close()
