"""Classes of custom steps, found by their dotted paths in the packages that the deployment allows.

Enters: paths of classes. Leaves: their contracts, and constructed steps. Guaranteed: a module is imported by the worker
only after a child process has imported it within the time limit, and beside the event loop; so one that exits, crashes
or never returns costs the edit that names it a refusal, and the worker nothing.
"""

import asyncio
import importlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from agents.ports.pipelines import CustomStep, StepPorts
from agents.rules.pipelines.contract import StepContract, custom_contract, refuse
from schemas.state.pipelines import PlacedStep, Topology

MAX_PROBLEM_CHARS = 300
"""Characters of an exception that a refusal repeats."""

CHILD = f"""
import importlib, json, os, sys
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
sys.path[:] = json.loads(sys.argv[1])
module = sys.argv[2]
sys.argv[:] = [""]
try:
    importlib.import_module(module)
    said = "imported"
except BaseException as problem:
    said = (type(problem).__name__ + ": " + str(problem))[:{MAX_PROBLEM_CHARS}]
os.write(out, said.encode(errors="replace"))
os._exit(0)
"""
"""Imports a module and says what came of it. It says so on a copy of its standard output, which the module can't use,
and ends at once: threads that the module has started would keep the process."""


class PythonSteps:
    """Implements `agents.ports.pipelines.InstalledSteps` over Python's own modules."""

    def __init__(self, packages: Collection[str] = ()) -> None:
        """`packages` are those that steps may come from, each with all below it."""
        self._packages = frozenset(packages)
        self._problems: dict[str, str] = {}
        """Why modules can't be imported, as the last attempts have found."""

    async def load(self, topology: Topology, limit_s: float, *, again: bool = True) -> None:
        for step in topology.steps():
            module, _ = _parted(step.implementation or "")
            if step.implementation is None or not self._is_allowed(module) or module in sys.modules:
                continue
            if module in self._problems and not again:
                continue
            try:
                problem = await _tried_in_child(module, limit_s) or await _imported(module, limit_s)
            except OSError as no_process:
                # The machine has no process or no memory left.
                problem = _shown(no_process)
            if problem is None:
                self._problems.pop(module, None)
            else:
                self._problems[module] = problem

    def contract(self, step: PlacedStep) -> StepContract:
        path = step.implementation or ""
        return custom_contract(step.step_id, path, self._class_at(path))

    def build(self, step: PlacedStep, config: BaseModel, ports: StepPorts) -> CustomStep:
        made_of = self._class_at(step.implementation or "")
        try:
            made: CustomStep = made_of(config, ports)
        # A constructor of the deployment may raise anything, `SystemExit` too; it awaits nothing that is cancelled.
        except BaseException as problem:
            message = f"{step.implementation} can't be constructed: {_shown(problem)}"
            raise refuse("unknown_class", message) from problem
        return made

    def _class_at(self, path: str) -> Any:
        """Return a class whose module was loaded. Raises Rejected."""
        module, name = _parted(path)
        if not self._is_allowed(module):
            listed = ", ".join(sorted(self._packages)) or "none"
            message = f"{path} is in no package of the setting MODESTREAM_PIPELINE_PACKAGES; there are: {listed}"
            raise refuse("unlisted_package", message)
        try:
            return getattr(sys.modules[module], name)
        except KeyError:
            reason = self._problems.get(module, "it was not imported")
        # `__getattr__` of a module may raise anything.
        except BaseException as problem:
            reason = _shown(problem)
        raise refuse("unknown_class", f"{path} can't be imported: {reason}")

    def _is_allowed(self, module: str) -> bool:
        return any(module == package or module.startswith(f"{package}.") for package in self._packages)


def _parted(path: str) -> tuple[str, str]:
    """Return module and name of `acme.steps.Redact` or `acme.steps:Redact`."""
    module, _, name = path.replace(":", ".").rpartition(".")
    return module, name


async def _tried_in_child(module: str, limit_s: float) -> str | None:
    """Import a module in a separate process; return the error, or None."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, json.dumps(sys.path), module),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit_s):
            said, _ = await child.communicate()
    except TimeoutError:
        return f"the import did not end within {limit_s:g} s"
    finally:
        # The whole group: it may have started processes, and the caller may have been cancelled.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
    if not said:
        return f"the import ended its process, exit code {child.returncode}"
    return None if said == b"imported" else said.decode()


async def _imported(module: str, limit_s: float) -> str | None:
    """Import a module here, in a thread; return the error, or None."""

    def attempt() -> str | None:
        importlib.invalidate_caches()
        try:
            importlib.import_module(module)
        except BaseException as problem:
            return _shown(problem)
        return None

    try:
        async with asyncio.timeout(limit_s):
            return await asyncio.to_thread(attempt)
    except TimeoutError:
        return f"the import did not end within {limit_s:g} s"


def _shown(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"[:MAX_PROBLEM_CHARS]
