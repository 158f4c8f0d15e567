"""A worker that ends leaves its group where all others are of its data directory, and where it can know that."""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from schemas.failures import Unavailable
from streams.bootstrap.member_guard import has_other_directories, should_leave


def noted(run: Path, member: str, worker: str | None = None) -> None:
    file = (run if worker is None else run / f"worker-{worker}") / "member.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"member": member}))


def group_of(*members: str) -> Callable[[], Awaitable[Mapping[str, str]]]:
    async def hosts() -> Mapping[str, str]:
        return dict.fromkeys(members, "127.0.0.1")

    return hosts


@pytest.mark.parametrize(
    ("members", "leaves"),
    [(["a"], False), (["a", "b"], True), (["a", "b", "c"], True), (["a", "b", "elsewhere"], False), ([], False)],
)
async def test_group_is_left_to_workers_of_the_same_directory(
    tmp_path: Path, members: list[str], *, leaves: bool
) -> None:
    noted(tmp_path, "a")
    noted(tmp_path, "b", "second")
    noted(tmp_path, "c", "third")
    assert await should_leave(group_of(*members), tmp_path) == leaves


@pytest.mark.parametrize("content", ["", "[]", "{}"])
async def test_damaged_note_counts_for_none(tmp_path: Path, content: str) -> None:
    noted(tmp_path, "a")
    noted(tmp_path, "b", "second")
    (tmp_path / "worker-second" / "member.json").write_text(content)
    assert not await should_leave(group_of("a", "b"), tmp_path)


async def test_worker_remains_a_member_of_a_group_that_is_not_reached(tmp_path: Path) -> None:
    async def away() -> Mapping[str, str]:
        raise Unavailable("no broker")

    noted(tmp_path, "a")
    assert not await should_leave(away, tmp_path)


@pytest.mark.parametrize(
    ("members", "is_other"), [(["a"], False), (["a", "b"], False), (["a", "elsewhere"], True), ([], False)]
)
async def test_workers_of_other_directories_are_seen(tmp_path: Path, members: list[str], *, is_other: bool) -> None:
    noted(tmp_path, "a")
    noted(tmp_path, "b", "second")
    assert await has_other_directories(group_of(*members), tmp_path) == is_other


async def test_nothing_is_seen_of_a_group_that_is_not_reached(tmp_path: Path) -> None:
    async def away() -> Mapping[str, str]:
        raise Unavailable("no broker")

    noted(tmp_path, "a")
    assert not await has_other_directories(away, tmp_path)
