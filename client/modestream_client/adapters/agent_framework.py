"""Microsoft Agent Framework's context provider: memories before an agent runs, its messages stored after.

    agent = Agent(client, context_providers=[ModestreamContextProvider(memory, user_id="u1")])

Before a run the memories that matter for the new messages are added as one message of quoted data; after it the new
messages and the answer are stored as turns of the session. Needs the extra `agent-framework`.
"""

from collections.abc import Iterable
from typing import Any, Unpack

from agent_framework import AgentSession, ContextProvider, Message, SessionContext, SupportsAgentRun

from modestream_client.adapters.agent_memory import AgentMemory, AgentOptions, AnyMemory
from modestream_client.vocabulary import Role

SOURCE = "modestream"
"""The provider's id in an agent."""

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
"""Roles of messages that are stored; instructions and results of tools are not."""


class ModestreamContextProvider(ContextProvider):
    """Adds memories before a run, and stores its messages after."""

    def __init__(self, memory: AnyMemory, **options: Unpack[AgentOptions]) -> None:
        super().__init__(SOURCE)
        self._memory = AgentMemory(memory, **options)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,  # noqa: ARG002
        session: AgentSession,  # noqa: ARG002
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002
    ) -> None:
        """Add the user's memories about the new messages, if there are any."""
        query = "\n".join(message.text for message in context.input_messages if message.role == "user").strip()
        if recalled := await self._memory.recall(query):
            context.extend_messages(self, [Message("user", [recalled])])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,  # noqa: ARG002
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002
    ) -> None:
        """Store the new messages and the answer, in order."""
        await self._store(session, context.input_messages)
        if context.response is not None:
            await self._store(session, context.response.messages)

    async def _store(self, session: AgentSession, messages: Iterable[Message]) -> None:
        for message in messages:
            if role := ROLES.get(str(message.role)):
                await self._memory.store(
                    message.text,
                    role=role,
                    speaker=message.author_name,
                    conversation_id=session.session_id,
                    turn_id=message.message_id,
                )
