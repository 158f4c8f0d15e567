"""CrewAI, with a model of its own interface."""

import asyncio
from typing import Any, ClassVar

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from modestream_client.adapters.crewai import ModestreamMemory

from tests.frameworks.suite import AgentSuite, Run


class AnsweringModel(BaseLLM):
    """Answers with one text, and keeps what it was asked."""

    answer: str
    asked: list[str] = []  # noqa: RUF012 - pydantic copies it

    def call(self, messages: Any, *positional: Any, **named: Any) -> str:
        self.asked.append(str(messages))
        return f"Thought: I know.\nFinal Answer: {self.answer}"

    def supports_function_calling(self) -> bool:
        return False


class TestCrewAI(AgentSuite):
    kinds: ClassVar = ("sync",)

    def expected(self, run: Run) -> list[tuple[str | None, ...]]:
        text = f"Task: {run.said}\nAgent: helper\nExpected result: An answer.\nResult: {run.answer}"
        return [("assistant", "helper", text)]

    async def talk(self, memory: Any, user: str, run: Run) -> str:
        model = AnsweringModel(model="answering", answer=run.answer)
        helper = Agent(role="helper", goal="Help.", backstory="You help.", llm=model)
        task = Task(description=run.said, expected_output="An answer.", agent=helper)
        memories = ModestreamMemory.of(memory, conversation_id=run.conversation, user_id=user)
        crew = Crew(agents=[helper], tasks=[task], memory=memories)
        result = await asyncio.to_thread(crew.kickoff)
        assert result.raw == run.answer
        return model.asked[0]
