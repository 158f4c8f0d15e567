"""Long texts are read in processes of their own, with the same result as in the worker's."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from agents.rules.index import lexical_document
from agents.rules.index.lexical_document import LONG_TEXT_CHARS, indexed_words
from agents.rules.text.passages import lexical_text, passage_starts
from schemas.state.memories import Memory
from streams.adapters.text_processes import TextProcesses
from streams.flow.text_reading import read_in_thread
from tests.builders.memories import made

FACTS = "My dentist is Dr. Harbour. The deploy target is fly.io. I prefer tea over coffee. "


def long_memory(number: int) -> Memory:
    return made(f"Note {number}. " + FACTS * (LONG_TEXT_CHARS // len(FACTS) + 1), number)


@pytest.fixture
async def processes() -> AsyncIterator[TextProcesses]:
    opened = TextProcesses()
    yield opened
    opened.close()


def pids(processes: TextProcesses) -> list[int]:
    assert processes._pool is not None
    return list(processes._pool._processes)


async def test_words_and_items_are_those_that_a_thread_finds(
    processes: TextProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = long_memory(1)
    expected = await read_in_thread(memory)
    words = indexed_words(lexical_text(memory), passage_starts(memory))
    monkeypatch.setattr(lexical_document, "_long", lexical_document._KeptWords(1))
    assert await processes(memory) == expected
    assert len(expected) >= 3
    monkeypatch.setattr(lexical_document, "_words_of", None)
    assert indexed_words(lexical_text(memory), passage_starts(memory)) == words


async def test_text_whose_process_died_is_read_all_the_same(processes: TextProcesses) -> None:
    await processes(long_memory(1))
    [pid] = pids(processes)
    os.kill(pid, signal.SIGKILL)
    for number in (2, 3):
        assert await processes(long_memory(number))
    assert pid not in pids(processes)


async def test_text_without_a_process_is_read_all_the_same(
    processes: TextProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProcessPoolExecutor, "submit", Mock(side_effect=OSError(24, "Too many open files")))
    assert await processes(long_memory(1))


PARENT = """
import asyncio
from tests.unit.adapters.test_text_processes import TextProcesses, long_memory, pids

async def main():
    processes = TextProcesses()
    await processes(long_memory(1))
    print(*pids(processes), flush=True)
    await asyncio.sleep(60)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_process_ends_with_a_killed_worker(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        state = Path(f"/proc/{int(parent.stdout.readline())}/stat")
        assert state.exists()
        parent.kill()
    until = time.monotonic() + 30
    while state.exists() and state.read_text().split()[2] != "Z":
        assert time.monotonic() < until
        time.sleep(0.02)
