"""LlamaIndex: an agent with `await`, a chat engine without."""

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from modestream_client import SyncHttpMemoryClient
from modestream_client.adapters.llama_index import ModestreamMemory

from tests.frameworks.suite import AgentSuite, Run


class TestLlamaIndex(AgentSuite):
    async def talk(self, memory: Any, user: str, run: Run) -> str:
        asked: list[str] = []

        def answer(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
            asked.append(str(messages))
            return ChatMessage(role="assistant", content=run.answer)

        model = MockFunctionCallingLLM(response_generator=answer)
        chat = ModestreamMemory.from_defaults(session_id=run.conversation).with_client(
            memory, user_id=user, user_name="Ana", agent_name="helper"
        )
        if isinstance(memory, SyncHttpMemoryClient):
            engine = SimpleChatEngine.from_defaults(llm=model, memory=chat)
            result = await asyncio.to_thread(engine.chat, run.said)
        else:
            result = await FunctionAgent(llm=model, streaming=False).run(run.said, memory=chat)
        assert str(result).strip() == run.answer
        return asked[0]
