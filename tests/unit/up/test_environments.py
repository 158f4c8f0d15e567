"""The environments of workers and of the gateway that `up` starts: each has its own secrets alone."""

import sys
from pathlib import Path

import pytest

from streams.up.layout import Layout
from streams.up.system import PROVIDER_KEY, gateway_service
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


PRINT_NAMES = (
    sys.executable,
    "-c",
    "import os; print(sorted(name for name in os.environ if name.endswith('_SECRET')))",
)


async def test_the_gateway_has_the_key_of_its_provider_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("MODEL_SECRET", "STORE_SECRET")
    for name in secrets:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv(PROVIDER_KEY, "MODEL_SECRET")
    layout = Layout(tmp_path)
    layout.create()
    gateway = await gateway_service(layout, PRINT_NAMES, "127.0.0.1:1", ("127.0.0.1", 1), without=secrets).start()
    await gateway.wait()
    assert layout.log("gateway").read_text() == "['MODEL_SECRET']\n"
