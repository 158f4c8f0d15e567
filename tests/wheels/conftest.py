"""The built wheels, and the running service, once for all tests."""

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.up.layout import free_port
from tests.wheels.installed import ROOT, Service, Wheels, alone, environment


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    folder = tmp_path_factory.mktemp("wheels")
    command = ["make", "dist", f"DIST={folder}"]
    subprocess.run(command, cwd=ROOT, env=alone(Path.home()), check=True, capture_output=True)
    [server], [client] = folder.glob("modestream-*.whl"), folder.glob("modestream_client-*.whl")
    return Wheels(server, client)


@pytest.fixture(scope="session")
def service(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("home")
    program = environment(tmp_path_factory.mktemp("server"), f"{wheels.server}[broker]") / "modestream"
    # A folder of the newcomer's own with a name of ours.
    (home / "agents").mkdir()
    (home / "agents" / "__init__.py").write_text("raise RuntimeError('the folder of the program that was not meant')")
    command = [str(program), "up", "--data-dir", "data", "--port", str(free_port()), "--http-port", "0"]
    with subprocess.Popen(command, cwd=home, env=alone(home), stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        try:
            match = re.search(r"^ready bootstrap=(\S+) http=(\S+)", up.stdout.readline())
            assert match
            yield Service(program, home, match[2], match[1])
        finally:
            up.send_signal(signal.SIGTERM)
    shutil.rmtree(home)
