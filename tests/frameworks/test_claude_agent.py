"""Claude Agent SDK: its client over a transport that asks hooks and tools as the agent's program does."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, TextBlock, Transport
from modestream_client.adapters.claude_agent import ModestreamHooks

from tests.frameworks.suite import AgentSuite, Run

TIMES = iter(range(10**6))


class Program(Transport):
    """The agent's program: answers a prompt, and writes its transcript a moment after it stops."""

    def __init__(self, folder: Path, run: Run) -> None:
        self._run = run
        self._transcript = folder / f"{run.conversation}.jsonl"
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._hooks: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked = ""

    async def connect(self) -> None: ...

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None: ...

    async def close(self) -> None:
        self._out.put_nowait(None)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._out.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            for event, matchers in (message["request"].get("hooks") or {}).items():
                self._hooks[event] = matchers[-1]["hookCallbackIds"][-1]
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self._out.put_nowait({"type": "control_response", "response": answer})
        elif message["type"] == "control_response":
            self._answers[message["response"]["request_id"]].set_result(message["response"])
        else:
            self._tasks.add(asyncio.create_task(self._answer(message["message"]["content"])))

    async def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request to the SDK; return its answer."""
        number = f"p{len(self._answers)}"
        self._answers[number] = asyncio.get_running_loop().create_future()
        self._out.put_nowait({"type": "control_request", "request_id": number, "request": request})
        answer = await self._answers[number]
        assert answer["subtype"] == "success", answer
        return answer["response"]

    async def call_server(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": len(self._answers), "method": method, "params": parameters}
        return await self.ask(subtype="mcp_message", server_name="memory", message=call)

    async def _answer(self, prompt: str) -> None:
        about = {"session_id": self._run.conversation, "transcript_path": str(self._transcript), "cwd": "/src"}
        added = await self._hook("UserPromptSubmit", {**about, "prompt": prompt})
        self.asked = prompt + added.get("hookSpecificOutput", {}).get("additionalContext", "")
        self._write("user", prompt)
        text = [{"type": "text", "text": self._run.answer}]
        said = {"type": "assistant", "message": {"role": "assistant", "model": "m", "content": text}}
        self._out.put_nowait({**said, "session_id": self._run.conversation})
        stopped = self._hook("Stop", {**about, "stop_hook_active": False, "last_assistant_message": self._run.answer})
        stopping = asyncio.create_task(stopped)
        await asyncio.sleep(0.1)
        self._write("assistant", text)
        await stopping
        numbers = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
        ended = {"type": "result", "subtype": "success", "is_error": False, "session_id": self._run.conversation}
        self._out.put_nowait({**ended, **numbers})

    async def _hook(self, event: str, about: dict[str, Any]) -> dict[str, Any]:
        said = {**about, "hook_event_name": event}
        return await self.ask(subtype="hook_callback", callback_id=self._hooks[event], input=said, tool_use_id=None)

    def _write(self, role: str, content: Any) -> None:
        line = {
            "type": role,
            "uuid": str(uuid5(NAMESPACE_URL, f"{self._run.run_id} {role}")),
            "sessionId": self._run.conversation,
            "timestamp": f"2026-03-05T08:{next(TIMES) // 60 % 60:02}:{next(TIMES) % 60:02}.000Z",
            "message": {"role": role, "content": content},
        }
        with self._transcript.open("a") as transcript:
            transcript.write(json.dumps(line) + "\n")


class TestClaudeAgent(AgentSuite):
    @pytest.fixture(autouse=True)
    def _transcripts(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.folder = tmp_path_factory.mktemp("transcripts")

    async def talk(self, memory: Any, user: str, run: Run) -> str:
        program = Program(self.folder, run)
        hooks = ModestreamHooks(memory, user_id=user, user_name="Ana", agent_name="helper")
        async with ClaudeSDKClient(hooks.added_to(ClaudeAgentOptions()), transport=program) as agent:
            await agent.query(run.said)
            said = [message async for message in agent.receive_response() if isinstance(message, AssistantMessage)]
        assert said[0].content == [TextBlock(run.answer)]
        return program.asked

    async def test_the_tool_finds_what_was_said(self, memory: Any, user: str) -> None:
        await self.talk(memory, user, Run("The garage door sticks."))
        await self.stored(user, 2)
        program = Program(self.folder, Run("", conversation="c2"))
        hooks = ModestreamHooks(memory, user_id=user)
        async with ClaudeSDKClient(hooks.added_to(ClaudeAgentOptions()), transport=program):
            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            await program.call_server("initialize", client)
            arguments = {"query": "What is wrong with the garage door?"}
            answer = await program.call_server("tools/call", {"name": "search_memory", "arguments": arguments})
        assert "The garage door sticks." in json.dumps(answer)

    async def test_later_prompts_of_a_session_get_no_context(self, memory: Any, user: str) -> None:
        await self.talk(memory, user, Run("The garage door sticks.", conversation="c1"))
        await self.stored(user, 2)
        hooks = ModestreamHooks(memory, user_id=user)
        event = {"session_id": "c2", "prompt": "What is wrong with the garage door?"}
        added = [await hooks.on_prompt(event, None, {"signal": None}) for _ in range(2)]
        assert [bool(each) for each in added] == [True, False]
