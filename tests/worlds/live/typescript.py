"""The TypeScript client, built where Node is."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[3] / "client-ts"

OLDEST_NODE = 20

INSTALLED_WITHIN_S = 120.0


def run(*command: str, cwd: Path = CLIENT, stdin: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program with further variables. Raises TimeoutExpired."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **more},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=INSTALLED_WITHIN_S,
        check=False,
    )


def build_client() -> Path:
    """Return the folder of the built client; skip the test where Node or the packages of its lock can't be had."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no node or no npm on the path")
    [version, *_] = re.findall(r"\d+", run("node", "--version").stdout)
    if int(version) < OLDEST_NODE:
        pytest.skip(f"node {version} is older than {OLDEST_NODE}")
    lock, mark = CLIENT / "package-lock.json", CLIENT / "node_modules" / ".package-lock.json"
    if not mark.exists() or mark.stat().st_mtime < lock.stat().st_mtime:
        try:
            installed = run("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm takes more than {INSTALLED_WITHIN_S:g} s to install the client's packages")
        if installed.returncode != 0:
            pytest.skip(f"npm can't install the client's packages: {installed.stderr[-300:]}")
    built = run("npm", "run", "build")
    assert built.returncode == 0, built.stdout
    return CLIENT
