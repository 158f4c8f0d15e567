"""OpenAI Agents SDK, with its scripted model."""

# mypy: disable-error-code="attr-defined, import-not-found"
# Its package has the name of one of ours.

from typing import Any

from agents.testing import ScriptedModel, assistant_message
from modestream_client.adapters.openai_agents import ModestreamSession

from agents import Agent, RunConfig, Runner, SQLiteSession, set_tracing_disabled
from tests.frameworks.suite import AgentSuite, Run

set_tracing_disabled(disabled=True)


class TestOpenAIAgents(AgentSuite):
    async def talk(self, memory: Any, user: str, run: Run) -> str:
        model = ScriptedModel([[assistant_message(run.answer)]])
        session = ModestreamSession(SQLiteSession(run.conversation), memory, user_id=user, user_name="Ana")
        result = await Runner.run(
            Agent(name="helper", model=model),
            run.said,
            session=session,
            run_config=RunConfig(call_model_input_filter=session.recall),
        )
        assert result.final_output == run.answer
        call = model.first_call
        assert call is not None
        return str(call.input)
