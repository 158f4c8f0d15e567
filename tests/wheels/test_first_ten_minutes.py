"""The first ten minutes of a newcomer: the built wheels in empty environments, with an empty home folder."""

import asyncio
import json
import os
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

from tests.fakes.provider import EVENTS, LAST, FakeProvider, completion, event
from tests.wheels.installed import READY_WITHIN_S, ROOT, Service, Wheels, alone, environment, modestream


@pytest.mark.timeout(READY_WITHIN_S)
def test_a_turn_over_http_is_found(service: Service) -> None:
    said = {"conversation_id": "c1", "role": "user", "content": "The deploy target is fly.io now."}
    httpx.post(f"{service.url}/v1/users/ana/turns", json=said, timeout=30).raise_for_status()
    assert service.search("ana", "where do we deploy?")[0]["text"] == said["content"]


def test_the_command_remembers(service: Service) -> None:
    said = service.run("remember", "The spare key is under the third pot.", "--user", "ben")
    assert service.search("ben", "where is the key?")[0]["memory_id"] == json.loads(said.stdout)["memory_id"]


@pytest.fixture(scope="module")
def agent_python(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the client, a provider's library and a framework."""
    packages = f"{wheels.client}[http,langgraph]", "openai", "langgraph"
    return environment(tmp_path_factory.mktemp("agent"), *packages) / "python"


async def talk(service: Service, provider: FakeProvider, program: Sequence[str | Path], said: str) -> str:
    """Give an example one line of a person; return what it prints."""
    variables = {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k", "MODESTREAM_URL": service.url}
    pipe, env = asyncio.subprocess.PIPE, alone(service.home, **variables)
    agent = await asyncio.create_subprocess_exec(*program, env=env, stdin=pipe, stdout=pipe)
    printed, _ = await agent.communicate(f"{said}\n\n".encode())
    return printed.decode()


async def test_a_second_conversation_remembers_the_first(service: Service, agent_python: Path) -> None:
    async with FakeProvider() as provider:
        for conversation, question in (("first", "My cat is called Miso."), ("second", "What is my cat called?")):
            provider.next(event("Noted"), event("."), LAST, headers=EVENTS)
            program = agent_python, ROOT / "examples" / "agent.py", "cleo", conversation
            assert await talk(service, provider, program, question) == "> Noted.\n> "
    asked = json.loads(provider.asked[-1].body)["messages"]
    assert asked[-1] == {"role": "user", "content": "What is my cat called?"}
    assert "Miso" in json.dumps(asked[:-1])


async def test_a_graph_recalls_what_was_said(service: Service, agent_python: Path) -> None:
    async with FakeProvider() as provider:
        for said in ("The garage door sticks.", "What is wrong with the door?"):
            provider.next(completion("Noted."))
            program = agent_python, ROOT / "examples" / "langgraph_agent.py", "emil"
            assert await talk(service, provider, program, said) == "> Noted.\n> "
    assert "The garage door sticks." in json.loads(provider.asked[-1].body)["messages"][0]["content"]


async def test_an_editor_starts_a_server_of_tools(service: Service) -> None:
    started = json.loads((ROOT / "examples" / "mcp.json").read_text())["mcpServers"]["memory"]
    environment = alone(service.home, **(started["env"] | {"MODESTREAM_BROKER": f"kafka://{service.broker}"}))
    server = StdioServerParameters(command=str(service.program), args=started["args"], env=environment)
    async with Client(server) as memory:
        await memory.call_tool("add_memory", {"text": "The attic key hangs by the door."})
        found = await memory.call_tool("search_memory", {"query": "where is the attic key?"})
    assert "hangs by the door" in json.dumps(found.structured_content)


def hook(service: Service, event: str, transcript: Path) -> str:
    """Call the hook of Claude Code, as it does; return what it prints."""
    told = {"hook_event_name": event, "session_id": "s1", "transcript_path": str(transcript), "cwd": "/src/boats"}
    environment = alone(service.home, MODESTREAM_URL=service.url, MODESTREAM_USER="fay")
    command = [str(service.program), "hook", "claude-code"]
    return subprocess.run(
        command, input=json.dumps(told), env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def test_a_session_of_a_coding_agent_knows_an_earlier_one(service: Service, tmp_path: Path) -> None:
    said = {"role": "user", "content": "We decided that boats are stored in SQLite."}
    line = {"type": "user", "uuid": "m1", "sessionId": "s1", "timestamp": "2026-03-05T08:01:00.000Z", "message": said}
    transcript = tmp_path / "first.jsonl"
    transcript.write_text(json.dumps(line) + "\n")
    assert hook(service, "Stop", transcript) == ""
    begun = json.loads(hook(service, "SessionStart", tmp_path / "second.jsonl"))["hookSpecificOutput"]
    assert "boats are stored in SQLite" in begun["additionalContext"]


def test_a_chat_database_is_published_once(service: Service, agent_python: Path, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "chats.db") as database:
        database.execute("CREATE TABLE messages (id, user, conversation, role, text, sent_at)")
        row = (1, "dora", "c1", "user", "The garage code is 4711.", "2026-01-02T03:04:05Z")
        database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", row)
    command = [agent_python, ROOT / "examples" / "chat_database.py", tmp_path / "chats.db"]
    variables = alone(service.home, MODESTREAM_BROKER=f"kafka://{service.broker}")
    runs = [subprocess.run(command, env=variables, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stdout.split()[1] for run in runs] == ["new", "known"]
    assert service.search("dora", "what is the garage code?")[0]["text"] == row[4]


def test_other_distributions_keep_their_names(wheels: Wheels, tmp_path: Path) -> None:
    programs = environment(tmp_path / "environment", str(wheels.server), "openai-agents")
    shown = subprocess.run(
        [programs / "python", "-c", "import agents; print(agents.Agent.__module__)"],
        cwd=tmp_path, env=alone(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout == "agents.agent\n"
    refused = modestream(programs / "modestream", tmp_path, "up")
    assert refused.returncode == os.EX_CONFIG
    assert refused.stderr.endswith("pip install 'modestream[broker]'\n")
