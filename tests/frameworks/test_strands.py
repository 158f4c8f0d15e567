"""Strands, with a model of its own interface."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from modestream_client import SyncHttpMemoryClient
from modestream_client.adapters.strands import ModestreamStore
from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model

from tests.frameworks.suite import AgentSuite, Run


class AnsweringModel(Model):
    """Answers with one text, and keeps what it was asked."""

    def __init__(self, answer: str) -> None:
        self.asked: list[str] = []
        self._answer = answer

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *positional: Any, **named: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *positional: Any, **named: Any) -> AsyncIterator[Any]:
        self.asked.append(str(messages))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": self._answer}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


class TestStrands(AgentSuite):
    async def talk(self, memory: Any, user: str, run: Run) -> str:
        model = AnsweringModel(run.answer)
        store = ModestreamStore(
            memory,
            conversation_id=run.conversation,
            run_id=run.run_id,
            user_id=user,
            user_name="Ana",
            agent_name="helper",
        )
        manager = MemoryManager(stores=[store])
        agent = Agent(model=model, memory_manager=manager, callback_handler=None)
        if isinstance(memory, SyncHttpMemoryClient):
            result = await asyncio.to_thread(agent, run.said)
        else:
            result = await agent.invoke_async(run.said)
            await manager.flush()
        assert str(result).strip() == run.answer
        return model.asked[0]
