"""Pydantic AI, with its function model."""

from typing import Any

from modestream_client.adapters.pydantic_ai import ModestreamCapability
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.frameworks.suite import AgentSuite, Run


class TestPydanticAI(AgentSuite):
    async def talk(self, memory: Any, user: str, run: Run) -> str:
        asked: list[str] = []

        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            asked.append(str(messages))
            return ModelResponse(parts=[TextPart(run.answer)])

        capability = ModestreamCapability(memory, user_id=user, user_name="Ana")
        agent = Agent(FunctionModel(model), name="helper", capabilities=[capability])
        result = await agent.run(run.said, conversation_id=run.conversation, run_id=run.run_id)
        assert result.output == run.answer
        return asked[0]
