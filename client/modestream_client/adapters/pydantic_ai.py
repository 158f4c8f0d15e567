"""Pydantic AI's capability: memories before a run's model requests, its messages stored after.

    agent = Agent("openai-chat:gpt-5", capabilities=[ModestreamCapability(memory, user_id="u1")])
    await agent.run("Where is the key?", conversation_id="c1")

Memories about the prompt stand before it as quoted data, and not in the history that the framework keeps. A run is
stored when it ends: its prompt and its answers, by run and position, so that a run with the same `run_id` is stored
once. Needs the extra `pydantic-ai`.
"""

from copy import copy
from typing import Any, Unpack

from pydantic_ai import AgentRunResult, ModelRequest, ModelRequestContext, RunContext, TextPart, UserPromptPart
from pydantic_ai.capabilities import AbstractCapability

from modestream_client.adapters.agent_memory import AgentMemory, AgentOptions, AnyMemory, turn_id_of
from modestream_client.vocabulary import Role


class ModestreamCapability(AbstractCapability[Any]):
    """Adds memories to a run, and stores it."""

    def __init__(self, memory: AnyMemory, **options: Unpack[AgentOptions]) -> None:
        self._memory = AgentMemory(memory, **options)
        self._is_recalled = False
        self._recalled: str | None = None

    async def for_run(self, ctx: RunContext[Any]) -> "ModestreamCapability":  # noqa: ARG002
        return copy(self)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the memories about the prompt before it: the same in each request of the run, recalled once."""
        if not self._is_recalled:
            self._is_recalled, self._recalled = True, await self._memory.recall(_text_of(ctx.prompt))
        if self._recalled:
            messages = list(request_context.messages)
            ours = (at for at, message in enumerate(messages) if message.run_id == ctx.run_id)
            messages.insert(next(ours, len(messages) - 1), ModelRequest(parts=[UserPromptPart(self._recalled)]))
            request_context.messages = messages
        return request_context

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store the run's messages that have a text, in order."""
        name = ctx.agent.name if ctx.agent is not None else None
        for position, message in enumerate(result.new_messages()):
            if isinstance(message, ModelRequest):
                parts = [_text_of(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
                role: Role = "user"
                speaker = None
            else:
                parts = [part.content for part in message.parts if isinstance(part, TextPart)]
                role, speaker = "assistant", name
            await self._memory.store(
                "\n".join(parts),
                role=role,
                speaker=speaker,
                conversation_id=ctx.conversation_id or "default",
                turn_id=turn_id_of(ctx.conversation_id, ctx.run_id, position),
                occurred_at=message.timestamp,
            )
        return result


def _text_of(prompt: Any) -> str:
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str))
