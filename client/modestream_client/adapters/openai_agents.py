"""OpenAI Agents SDK's session: the conversation in a session of the SDK, its texts remembered beyond it.

    session = ModestreamSession(SQLiteSession("c1", "sessions.db"), memory, user_id="u1")
    recalling = RunConfig(call_model_input_filter=session.recall)
    await Runner.run(agent, "Where is the key?", session=session, run_config=recalling)

The wrapped session keeps the items, with calls of tools: the conversation goes on while the memory is away. What user
and agent say becomes turns of the conversation `session_id`. Memories about the input stand before it as quoted data,
in the model's input alone. Needs the extra `openai-agents`.
"""

import sys
from dataclasses import replace
from typing import Any, Unpack

from modestream_client.adapters.agent_memory import AgentMemory, AgentOptions, AnyMemory, turn_id_of

Item = dict[str, Any]


class ModestreamSession:
    """A session whose texts are turns. Implements `agents.memory.Session`.

    Removing items from the session forgets nothing: `memory.forget(conversation_id=…)` does.
    """

    # A protocol needs no import: the SDK's package `agents` has the name of one of the server's.
    def __init__(self, session: Any, memory: AnyMemory, **options: Unpack[AgentOptions]) -> None:
        """`session` is one of the SDK's, such as `SQLiteSession`."""
        self.session_id = session.session_id
        self.session_settings = session.session_settings
        self._session = session
        self._memory = AgentMemory(memory, **options)
        self._agent_name: str | None = None
        self._recalled: tuple[str, str | None] | None = None

    async def get_items(self, limit: int | None = None) -> list[Item]:
        return await self._session.get_items(limit)

    async def add_items(self, items: list[Item]) -> None:
        """Store the texts of the items, then add them to the wrapped session."""
        # Not all: a limit in the session's settings would give different items the same position.
        position = len(await self._session.get_items(sys.maxsize))
        for item in items:
            text, role = _text_of(item), item.get("role")
            if role == "user":
                # Before it is stored: it would find itself.
                await self._recall(text)
            if role in ("user", "assistant"):
                await self._memory.store(
                    text,
                    role=role,
                    speaker=self._agent_name if role == "assistant" else None,
                    conversation_id=self.session_id,
                    turn_id=turn_id_of(self.session_id, position, role, text),
                )
            position += 1
        await self._session.add_items(items)

    async def pop_item(self) -> Item | None:
        return await self._session.pop_item()

    async def clear_session(self) -> None:
        await self._session.clear_session()

    async def recall(self, data: Any) -> Any:
        """Put the memories about the last input before it; for `RunConfig(call_model_input_filter=…)`."""
        self._agent_name = data.agent.name
        items = list(data.model_data.input)
        at = next((at for at in reversed(range(len(items))) if items[at].get("role") == "user"), None)
        if at is None or not (recalled := await self._recall(_text_of(items[at]))):
            return data.model_data
        return replace(data.model_data, input=[*items[:at], {"role": "user", "content": recalled}, *items[at:]])

    async def _recall(self, text: str) -> str | None:
        if self._recalled is None or self._recalled[0] != text:
            self._recalled = text, await self._memory.recall(text)
        return self._recalled[1]


def _text_of(item: Item) -> str:
    content = item.get("content") or ()
    parts = [{"text": content}] if isinstance(content, str) else content
    return "\n".join(part["text"] for part in parts if part.get("text"))
