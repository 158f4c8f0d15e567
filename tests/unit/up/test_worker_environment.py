"""What a worker's process is started with."""

from pathlib import Path

import pytest

from streams.up.layout import Layout
from streams.up.workers import worker_processes, worker_service

OWN, OPERATORS = "glibc.malloc.hugetlb=1", "glibc.malloc.arena_max=2"


@pytest.mark.parametrize(("given", "expected"), [(None, OWN), (OPERATORS, OPERATORS)])
async def test_allocator_takes_huge_pages_unless_the_operator_has_tuned_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, expected: str
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if given is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", given)
    layout = Layout(tmp_path)
    layout.create()
    [worker] = worker_processes(layout, (None,))
    child = await worker_service(layout, worker, ("/bin/sh", "-c", 'echo "$GLIBC_TUNABLES"'), {}, 60).start()
    assert await child.wait() == 0
    assert layout.log("worker").read_text() == f"{expected}\n"
