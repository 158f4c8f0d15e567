"""The TypeScript client: its own tests against a gateway, and its package in an empty folder."""

import asyncio
import json
import re
from pathlib import Path

from tests.fakes.model_server import ModelServer
from tests.worlds.live.gateways import gateway_on
from tests.worlds.live.processes import ROOT, Deployment
from tests.worlds.live.typescript import run


def test_the_generated_types_are_those_of_the_document(typescript_client: Path) -> None:
    checked = run("npm", "run", "check", cwd=typescript_client)
    assert checked.returncode == 0, f"run `npm run generate` in client-ts: {checked.stderr}"


def test_the_lock_names_no_registry(typescript_client: Path) -> None:
    packages = json.loads((typescript_client / "package-lock.json").read_text())["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]


def programs(document: Path) -> list[str]:
    return re.findall(r"```js\n(import .*?)```", document.read_text(), re.DOTALL)


def installed(client: Path, folder: Path) -> Path:
    """Return an empty folder in which the packed client and the packages of the documented programs are installed."""
    packed = run("npm", "pack", "--silent", "--pack-destination", str(folder), cwd=client).stdout.strip()
    empty = folder / "program"
    empty.mkdir()
    packages = [str(folder / packed), "ai@6", "@ai-sdk/openai@3"]
    done = run("npm", "install", "--no-audit", "--no-fund", "--prefer-offline", *packages, cwd=empty)
    assert done.returncode == 0, done.stderr
    return empty


async def test_the_client_and_the_documented_programs_over_a_gateway(
    typescript_client: Path, deployment: Deployment, tmp_path: Path
) -> None:
    async with ModelServer() as model:
        profile = {"model": "openai/fake", "api_base": model.url, "timeout_s": 5.0}
        deployment.more["LLM_PROFILES"] = json.dumps({"default": profile})
        await deployment.ready()
        async with gateway_on(deployment.environment, tmp_path) as (gateway, _):
            variables = {"MODESTREAM_URL": gateway.url, "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
            tested = await asyncio.to_thread(run, "npm", "test", cwd=typescript_client, **variables)
            assert tested.returncode == 0, tested.stdout[-5000:]

            folder = await asyncio.to_thread(installed, typescript_client, tmp_path)
            documents = typescript_client / "README.md", ROOT / "docs" / "typescript.md"
            [first], [chat] = map(programs, documents)
            (folder / "first.mjs").write_text(first)
            (folder / "chat.mjs").write_text(chat)
            said = await asyncio.to_thread(run, "node", "first.mjs", cwd=folder, **variables)
            assert said.stdout == "The deploy target is fly.io now.\n", said.stderr
            asked = "Where do we deploy? [[general]]\n\n"
            said = await asyncio.to_thread(run, "node", "chat.mjs", cwd=folder, stdin=asked, **variables)
            assert said.stdout == '{"mode": "general"}\n', said.stderr
