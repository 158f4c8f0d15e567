"""The client as a distribution: what it needs, what it does not, and what its wheel has."""

import subprocess
import sys
import zipfile
from contextlib import chdir
from pathlib import Path

import hatchling.build
import modestream_client
import pytest

CLIENT = Path("client").resolve()

UV = Path(sys.executable).parent / "uv"

CHECK = """
import sys
allowed = {allowed!r}
class Forbid:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        is_known = top in sys.stdlib_module_names or top in allowed or top.startswith("_sysconfigdata")
        if not is_known:
            raise ImportError("forbidden: " + name)
sys.path[:0] = {paths!r}
sys.meta_path.insert(0, Forbid())
import agents
assert agents.__file__.startswith({paths!r}[0]), "the other distribution's package"
{program}
"""
"""Runs with a foreign package `agents` first on the path, and without anything that is not allowed."""

NEEDED = {
    "modestream_client", "agents", "aiokafka", "async_timeout", "packaging", "typing_extensions", "pydantic",
    "pydantic_core", "annotated_types", "typing_inspection", "cramjam",
}  # fmt: skip
"""What aiokafka and pydantic bring."""

OPTIONAL = {"gssapi", "email_validator"}
"""Looked for by them, and not needed."""

HTTP = {"httpx", "httpcore", "anyio", "sniffio", "idna", "certifi", "h11"}
"""What the extra `http` brings."""

USE = """
from modestream_client import {name}, MemoryClientError, KafkaSecurity, MemoryCalls
import asyncio
async def main():
    try:
        async with {name}({address!r}, user_id="u1", timeout=2) as memory:
            await memory.remember("x")
    except MemoryClientError as error:
        print(type(error).__name__)
asyncio.run(main())
"""


def run(program: str, allowed: set[str], foreign: Path) -> str:
    """Run a program as in an environment that has only these packages."""
    (foreign / "agents").mkdir(exist_ok=True)
    (foreign / "agents" / "__init__.py").write_text("")
    code = CHECK.format(allowed=allowed, paths=[str(foreign), str(CLIENT)], program=program)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False, cwd=foreign, env={}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_kafka_client_needs_aiokafka_and_pydantic_alone(tmp_path: Path) -> None:
    assert run(USE.format(name="MemoryClient", address="127.0.0.1:1"), NEEDED, tmp_path) == "MemoryUnreachable"


@pytest.mark.parametrize("name", ["HttpMemoryClient", "SyncHttpMemoryClient"])
def test_http_client_without_httpx_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.startswith(("modestream_client.http", "httpx."))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModuleNotFoundError, match=rf"{name} needs httpx: pip install 'modestream-client\[http\]'"):
        getattr(modestream_client, name)


def test_http_client_needs_httpx_and_no_kafka(tmp_path: Path) -> None:
    allowed = (NEEDED | HTTP) - {"aiokafka"}
    told = run(USE.format(name="HttpMemoryClient", address="http://127.0.0.1:1"), allowed, tmp_path)
    assert told == "MemoryUnreachable"


def build_wheel(directory: Path) -> str:
    with chdir(CLIENT):
        return str(hatchling.build.build_wheel(str(directory)))


@pytest.fixture
def wheel(tmp_path: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(tmp_path / build_wheel(tmp_path))


def test_wheel_has_every_module_the_types_and_the_licence(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    modules = {str(path.relative_to(CLIENT)) for path in (CLIENT / "modestream_client").rglob("*.py")}
    assert modules | {"modestream_client/py.typed"} <= names
    assert {name.partition("/")[0] for name in names if "dist-info" not in name} == {"modestream_client"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    [metadata] = [wheel.read(name).decode() for name in names if name.endswith("/METADATA")]
    needed = {line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra" not in line}
    assert {line.split()[1].partition(">")[0].partition("<")[0] for line in needed} == {"aiokafka[zstd]", "pydantic"}


UNPACK = """
from aiokafka.codec import has_zstd, zstd_decode, zstd_encode
import aiokafka.conn
before = vars(aiokafka.conn.AIOKafkaConnection).copy()
import modestream_client.kafka.client
assert vars(aiokafka.conn.AIOKafkaConnection) == before
print(has_zstd() and zstd_decode(zstd_encode(b"text")).decode())
"""


def test_installed_from_the_wheel_alone_it_unpacks_what_workers_pack(tmp_path: Path) -> None:
    python = tmp_path / "alone" / "bin" / "python"
    subprocess.run(
        [str(UV), "venv", "--quiet", "--no-config", "--python", sys.executable, str(python.parents[1])], check=True
    )
    built = tmp_path / build_wheel(tmp_path)
    install = [str(UV), "pip", "install", "--quiet", "--python", str(python), str(built)]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"no packages can be fetched: {installed.stderr[-200:]}")
    told = subprocess.run([python, "-c", UNPACK], capture_output=True, text=True, check=False, cwd=tmp_path, env={})
    assert told.stdout.strip() == "text", told.stderr
