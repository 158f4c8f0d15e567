"""Adapters with their frameworks, from the built wheel, and the programs of the documentation."""

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fakes.provider import EVENTS, JSON, LAST, FakeProvider, completion, event
from tests.wheels.installed import READY_WITHIN_S, ROOT, Service, Wheels, alone, environment

pytestmark = [
    pytest.mark.timeout(READY_WITHIN_S),
    pytest.mark.skipif("TEST_FRAMEWORKS" not in os.environ, reason="installed for minutes: make test-frameworks"),
]

EXTRAS = ("claude-agent", "llama-index", "openai-agents", "pydantic-ai", "strands")

PROGRAM = re.compile(r"^### (.+?)\n.*?```python\n(.*?)```", re.MULTILINE | re.DOTALL)
PROGRAMS = dict(PROGRAM.findall((ROOT / "docs" / "frameworks.md").read_text()))

ABOUT = {"id": "c1", "created": 1, "model": "gpt-5-mini"}
"""Of a completion; Pydantic AI requires it."""


def installed(folder: Path, wheels: Wheels, extras: tuple[str, ...], lock: str) -> Path:
    """Return the Python of an environment with the client and frameworks, and what their tests need."""
    packages = f"{wheels.client}[{','.join(('http', *extras))}]", "openai", "pytest", "pytest-asyncio"
    return environment(folder, *packages, lock=lock) / "python"


@pytest.fixture(scope="module")
def python(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("frameworks"), wheels, EXTRAS, "requirements.frameworks.lock")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the tests, and not with our package `agents`."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def run_suites(python: Path, service: Service, folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    options = ("-c", os.devnull, "--rootdir", folder, "--confcutdir", folder / "tests/frameworks", "-W", "ignore")
    modes = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function", "-p", "no:cacheprovider")
    tests = [folder / "tests/frameworks" / f"test_{name.replace('-', '_')}.py" for name in names]
    env = alone(service.home, MODESTREAM_URL=service.url, PYTHONPATH=str(folder), CREWAI_DISABLE_TELEMETRY="true")
    command: list[str | Path] = [python, "-m", "pytest", "-q", "--import-mode=importlib", *options, *modes, *tests]
    return subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False)


def test_each_adapter_with_its_framework(python: Path, service: Service, folder: Path) -> None:
    suites = run_suites(python, service, folder, *EXTRAS)
    assert suites.returncode == 0, suites.stdout


def test_crewai(wheels: Wheels, service: Service, folder: Path) -> None:
    python = installed(folder / "environment", wheels, ("crewai",), "requirements.crewai.lock")
    suites = run_suites(python, service, folder, "crewai")
    assert suites.returncode == 0, suites.stdout


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_of_the_documentation_remembers(
    name: str, python: Path, service: Service, tmp_path: Path
) -> None:
    program, user = tmp_path / "program.py", f"reader-{name.replace(' ', '-')}"
    program.write_text(PROGRAMS[name])
    async with FakeProvider() as provider:
        env = alone(service.home, MODESTREAM_URL=service.url, OPENAI_BASE_URL=provider.url, OPENAI_API_KEY="k")
        env["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
        for conversation, said in (("first", "The garage door sticks."), ("second", "What is wrong with the door?")):
            # Strands asks for events.
            answer = (event("Noted."), LAST) if name == "Strands" else (completion("Noted.", **ABOUT),)
            provider.next(*answer, headers=EVENTS if name == "Strands" else JSON)
            command: list[str | Path] = [python, program, user, conversation, said]
            ran = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, env=env, stdout=asyncio.subprocess.PIPE)
            assert (await ran.communicate())[0] == b"Noted.\n"
    assert "The garage door sticks." in json.dumps(json.loads(provider.asked[-1].body)["messages"])
