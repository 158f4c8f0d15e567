"""Claude Agent SDK's hooks and tool: memories at a session's first prompt and by a tool, its messages stored.

    memories = ModestreamHooks(memory, user_id="u1")
    async with ClaudeSDKClient(memories.added_to(ClaudeAgentOptions())) as agent:
        ...

Messages are read from the session's transcript whenever the agent stops, with the ids that an import of it and
`modestream hook claude-code` give them: each is stored once. Needs the extra `claude-agent`.
"""

import asyncio
import dataclasses
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, Unpack

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, create_sdk_mcp_server, tool

from modestream_client.adapters.agent_memory import AgentMemory, AgentOptions, AnyMemory
from modestream_client.imports.transcripts import read_on
from modestream_client.outbox import Transcript

MAX_FOUND = 10
"""Memories found by the tool."""

WRITTEN_WITHIN_S, POLL_S = 1.0, 0.05
"""The agent may stop before its last message is in the transcript."""


class ModestreamHooks:
    """The memory of sessions of one user."""

    def __init__(self, memory: AnyMemory, **options: Unpack[AgentOptions]) -> None:
        self._memory = AgentMemory(memory, **options)
        self._begun: set[str] = set()
        self._transcripts: dict[str, tuple[Transcript, list[dict[str, Any]]]] = {}
        """What was read of each, by path, and the messages of it that were not stored."""

    def added_to(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        """Return options with the hooks and the tool `mcp__memory__search_memory`, which needs no permission."""
        hooks = dict(options.hooks or {})
        hooks["UserPromptSubmit"] = [*hooks.get("UserPromptSubmit", ()), HookMatcher(hooks=[self.on_prompt])]
        hooks["Stop"] = [*hooks.get("Stop", ()), HookMatcher(hooks=[self.on_stop])]
        search = tool("search_memory", "Search what was said in earlier conversations.", {"query": str})(self.search)
        servers = dict(options.mcp_servers) if isinstance(options.mcp_servers, dict) else {}
        return dataclasses.replace(
            options,
            hooks=hooks,
            mcp_servers={**servers, "memory": create_sdk_mcp_server("memory", tools=[search])},
            allowed_tools=[*options.allowed_tools, "mcp__memory__search_memory"],
        )

    async def on_prompt(self, event: Any, tool_use_id: str | None, context: Any) -> Any:  # noqa: ARG002
        """Add memories about the first prompt of a session; later prompts can use the tool."""
        if event["session_id"] in self._begun:
            return {}
        self._begun.add(event["session_id"])
        recalled = await self._memory.recall(event["prompt"])
        added = {"hookEventName": "UserPromptSubmit", "additionalContext": recalled}
        return {"hookSpecificOutput": added} if recalled else {}

    async def on_stop(self, event: Any, tool_use_id: str | None, context: Any) -> Any:  # noqa: ARG002
        """Store the messages of the transcript that were not stored before."""
        path, last = event["transcript_path"], (event.get("last_assistant_message") or "").strip()
        seen, waiting = self._transcripts.get(path, (Transcript("claude-code"), []))
        for _ in range(round(WRITTEN_WITHIN_S / POLL_S)):
            with suppress(OSError):
                seen, messages, _, left_out = await asyncio.to_thread(read_on, Path(path), seen)
                waiting += [message for message in messages if message["role"] in ("user", "assistant")]
                for at, reason in left_out.items():
                    # Shown once by default: the same line is read several times.
                    warnings.warn(f"{path}, at byte {at}: not stored, {reason}", stacklevel=1)
            self._transcripts[path] = seen, waiting
            if not last or any(last in message["content"] for message in waiting):
                break
            await asyncio.sleep(POLL_S)
        while waiting:
            turn = dict(waiting[0])
            if not await self._memory.store(turn.pop("content"), **turn):
                break
            waiting.pop(0)
        return {}

    async def search(self, arguments: Any) -> Any:
        """Answer the tool."""
        found = await self._memory.search(arguments["query"], MAX_FOUND)
        lines = [f"{hit.occurred_at[:10]} {hit.speaker or hit.role}: {hit.text}" for hit in found]
        return {"content": [{"type": "text", "text": "\n".join(lines) or "Nothing was found."}]}
