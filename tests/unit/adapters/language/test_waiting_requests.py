"""Questions that wait for a real provider in trouble: answered in time, without it, and with a warning."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from agents.retrieval.retrieve import JudgeLayers, LocalRerank, Rerank, Retrieve
from agents.rules.answer.drill_down import Layers
from agents.rules.answer.hits import hit_of
from schemas.messages.replies import SuccessReply
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from streams.bootstrap.prompts import Prompts
from streams.fair_queue import FairTurns
from streams.flow.pipelines.in_force import shipped_pipelines
from streams.flow.steps.answer import Question, RetrievalAgents
from tests.builders.memories import made
from tests.fakes.cross_encoder import FakeCrossEncoder
from tests.fakes.model_server import Behaviour
from tests.harnesses.language_models import LanguageModelHarness

# LiteLLM leaves coroutines behind where a call is cancelled in the middle.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

TIMEOUT_S = 0.3
LAYERS = Layers("which beta?", {"goals": [{"text": "ship the beta", "score": 1.0}]}, [])
RESULT = RetrieveResult(
    hits=[hit_of(made(f"tea {number}", number), 0.5) for number in range(3)], modes=[], strategy="hybrid"
)


class FixedRetrieve:
    """Answers every question alike. `depths` are the decided ones."""

    def __init__(self) -> None:
        self.depths: list[str | None] = []

    pipelines = shipped_pipelines().current

    async def layers(self, _request: RetrieveRequest) -> Layers:
        return LAYERS

    async def answer(self, _request: RetrieveRequest, decided: str | None = None) -> RetrieveResult:
        self.depths.append(decided)
        return RESULT


async def searched(answer: Callable[[RetrieveRequest], Awaitable[Any]], request: RetrieveRequest) -> SuccessReply:
    return SuccessReply(await answer(request))


@pytest.mark.parametrize("trouble", ["hang", "garbage", "close", 429])
async def test_provider_in_trouble_leaves_the_answer_without_it(rig: LanguageModelHarness, trouble: Behaviour) -> None:
    rig.server.become(trouble)
    models, prompts, retrieve = rig.models(), Prompts(), FixedRetrieve()
    await models.prepare()
    rerank = Rerank(models, prompts.of("rerank"), 20, TIMEOUT_S, by_default=True)
    judge = JudgeLayers(models, prompts.of("suffice"), TIMEOUT_S, by_default=True)
    local = LocalRerank(FakeCrossEncoder(), TIMEOUT_S)
    agents = RetrievalAgents(cast("Retrieve", retrieve), rerank, local, judge)
    scope = {"user_id": "ana"}
    request = RetrieveRequest.model_validate({"scope": scope, "query": "which beta?", "depth": "auto"})
    began = asyncio.get_running_loop().time()
    reply = await Question(agents, request, searched, FairTurns(8), lambda: math.inf).answer()
    assert asyncio.get_running_loop().time() - began < 10 * TIMEOUT_S
    assert reply.result == RESULT
    assert {warning.code for warning in reply.warnings} == {"not_reranked", "sufficiency_by_rules"}
    assert set(retrieve.depths) == {None}
