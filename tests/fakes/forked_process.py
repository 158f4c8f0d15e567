"""Embedder processes forked from one that has imported their modules: each import took 1.4 s of processor time."""

import importlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import process, reduction
from types import SimpleNamespace
from typing import Any

import pytest

from streams.adapters.embedding.process import embedder_process

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["streams.adapters.embedding.process.child"])


def fork_embedders(patched: pytest.MonkeyPatch) -> None:
    """Let embedder processes start by a fork."""
    forking = SimpleNamespace(Popen=ForkedProcess, DEVNULL=subprocess.DEVNULL)
    patched.setattr(embedder_process, "subprocess", forking)


class ForkedProcess:
    """Takes the place of `subprocess.Popen` for `python -m MODULE …` and `python -c PROGRAM …`."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int], **_: Any) -> None:
        inherited = {str(number): _Inherited(number) for number in pass_fds}
        forked = FORKS.Process(target=_run, args=([inherited.get(each, each) for each in command[1:]], dict(env)))
        forked.start()
        # It may outlive the tests' process, which would otherwise wait for it at its end.
        process._children.discard(forked)  # type: ignore[attr-defined]
        self.pid, self.wait = forked.pid, forked.join


class _Inherited:
    """An argument that is the number of an open file, and has another number in the forked process."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self._number),)


def _received(duplicate: Any) -> str:
    return str(duplicate.detach())


def _run(command: Sequence[str], env: Mapping[str, str]) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(env)
    option, program, *arguments = command
    sys.argv = [option, *arguments]
    if option == "-m":
        importlib.import_module(program).main()
    else:
        exec(program, {"__name__": "__main__"})
