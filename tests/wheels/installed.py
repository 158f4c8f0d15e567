"""The built wheels in empty environments, and the service that one of them starts in an empty home folder."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
OURS = ("MODESTREAM_", "PYTHON", "VIRTUAL_ENV", "TEST_", "OPENAI_", "MAKE", "XDG_")
READY_WITHIN_S = 400
"""Packages are installed, and Kafka is fetched into the empty home."""


@dataclass(frozen=True)
class Wheels:
    server: Path
    client: Path


@dataclass(frozen=True)
class Service:
    """A running `modestream up`."""

    program: Path
    home: Path
    url: str
    broker: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return modestream(self.program, self.home, *arguments, MODESTREAM_BROKER=f"kafka://{self.broker}")

    def search(self, user: str, query: str) -> list[dict[str, Any]]:
        reply = httpx.post(f"{self.url}/v1/users/{user}/memories/search", json={"query": query}, timeout=30)
        hits: list[dict[str, Any]] = reply.raise_for_status().json()["hits"]
        return hits


def alone(home: Path, **more: str) -> dict[str, str]:
    """The variables of a newcomer: the machine's own, such as proxies and certificates, and none of this project's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**kept, "HOME": str(home), **more}


def modestream(program: Path, home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command, env = [str(program), *arguments], alone(home, **more)
    return subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=60, check=False)


def environment(folder: Path, *packages: str, lock: str = "requirements.lock") -> Path:
    """Install packages into an empty environment, in the versions of a lock; return its folder of programs."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    options = ["--quiet", "--no-config", "--python", str(python), "--constraint", str(ROOT / lock)]
    subprocess.run([UV, "pip", "install", *options, *packages], check=True)
    return folder / "bin"
