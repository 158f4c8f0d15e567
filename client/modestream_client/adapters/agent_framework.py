"""Microsoft Agent Framework's context provider: memories before an agent runs, its messages stored after.

    agent = Agent(client, context_providers=[ModestreamContextProvider(memory, user_id="u1")])

Before a run the memories that matter for the new messages are added as one message of quoted data; after it the new
messages and the answer are stored as turns of the session. `memory` is an open `MemoryClient` or `HttpMemoryClient`.
Needs the extra `agent-framework`.
"""

from collections.abc import Iterable
from typing import Any

from agent_framework import AgentSession, ContextProvider, Message, SessionContext, SupportsAgentRun

from modestream_client.calls import MemoryCalls
from modestream_client.vocabulary import Role

SOURCE = "modestream"
"""The provider's id in an agent."""

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
"""Roles of messages that are stored; instructions and results of tools are not."""


class ModestreamContextProvider(ContextProvider):
    """Adds memories before a run, and stores its messages after."""

    def __init__(
        self, memory: MemoryCalls, *, user_id: str, project_id: str = "default", budget_tokens: int = 2000
    ) -> None:
        """`budget_tokens` is the limit of the added message, at least 300."""
        super().__init__(SOURCE)
        self._memory = memory
        self._user_id = user_id
        self._project_id = project_id
        self._budget_tokens = budget_tokens

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
        if not query:
            return
        assembled = await self._memory.assemble(
            query,
            budget_tokens=self._budget_tokens,
            append_query=False,
            user_id=self._user_id,
            projects=self._project_id,
        )
        if assembled.references:
            context.extend_messages(self, [Message("user", [assembled.messages[1]["content"]])])

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
            if message.text.strip() and (role := ROLES.get(str(message.role))):
                await self._memory.remember(
                    message.text,
                    role=role,
                    speaker=message.author_name,
                    conversation_id=session.session_id,
                    turn_id=message.message_id,
                    user_id=self._user_id,
                    project_id=self._project_id,
                )
