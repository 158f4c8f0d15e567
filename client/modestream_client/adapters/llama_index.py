"""LlamaIndex's memory: the framework's own chat history, with memories before the last message of the user.

    chat = ModestreamMemory.from_defaults(session_id="c1").with_client(memory, user_id="u1")
    await agent.run("Where is the key?", memory=chat)

Each message is a turn of the conversation `session_id` as soon as it is put. Methods without `await` start an event
loop: pass a client without `await` there, such as `SyncHttpMemoryClient`. Needs the extra `llama-index`.
"""

from collections.abc import Sequence
from typing import Any, Self, Unpack

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import Memory

from modestream_client.adapters.agent_memory import AgentMemory, AgentOptions, AnyMemory, turn_id_of
from modestream_client.vocabulary import Role

ROLES: dict[MessageRole, Role] = {MessageRole.USER: "user", MessageRole.ASSISTANT: "assistant"}
"""Roles of messages that are stored."""


class ModestreamMemory(Memory):
    """A chat history whose messages are turns, and which recalls earlier ones."""

    _memory: AgentMemory = PrivateAttr()
    _recalled: tuple[str, str | None] | None = PrivateAttr(default=None)

    def with_client(self, memory: AnyMemory, **options: Unpack[AgentOptions]) -> Self:
        """Set the client, before any other call."""
        self._memory = AgentMemory(memory, **options)
        return self

    async def aget(self, input: str | ChatMessage | None = None, **block_kwargs: Any) -> list[ChatMessage]:  # noqa: A002
        """Return the history, with the memories about the input or the last message of the user."""
        messages = await super().aget(input=input, **block_kwargs)
        at = next((at for at in reversed(range(len(messages))) if messages[at].role == MessageRole.USER), None)
        query = input.content if isinstance(input, ChatMessage) else input
        query = query or (messages[at].content if at is not None else None)
        if query and (recalled := await self._recall(query)):
            messages.insert(len(messages) if at is None else at, ChatMessage(role=MessageRole.USER, content=recalled))
        return messages

    async def aput(self, message: ChatMessage) -> None:
        """Store a message, and add it to the history."""
        await self.aput_messages([message])

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Store messages, and add them to the history."""
        await self._store(messages, len(await self.aget_all()))
        await super().aput_messages(messages)

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Store messages unless they were before, and make them the history."""
        await self._store(messages, 0)
        await super().aset(messages)

    async def _store(self, messages: Sequence[ChatMessage], position: int) -> None:
        for number, message in enumerate(messages, position):
            text = message.content or ""
            if message.role == MessageRole.USER:
                # Before it is stored: it would find itself.
                await self._recall(text)
            if role := ROLES.get(message.role):
                await self._memory.store(
                    text,
                    role=role,
                    conversation_id=self.session_id,
                    turn_id=turn_id_of(self.session_id, number, role, text),
                )

    async def _recall(self, text: str) -> str | None:
        if self._recalled is None or self._recalled[0] != text:
            self._recalled = text, await self._memory.recall(text)
        return self._recalled[1]
