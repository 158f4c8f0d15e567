"""Language models of the LiteLLM adapter over a server that misbehaves."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from schemas.failures import Unavailable
from schemas.models.language import ModelAnswer, Profile, Profiles, Prompt, Unanswerable
from schemas.state.understanding import Understanding
from streams.adapters.language.endpoint import BreakerLimits, EndpointDependencies
from streams.adapters.language.litellm_models import LiteLLMModels
from streams.observability.metrics import ModelMeters
from tests.fakes.model_server import ModelServer

PROMPT = Prompt(system="Describe the turn.", user="Deploying today [[code]].", version="understand-1")
KEY = "a-key-that-nobody-may-read"
AMPLE = BreakerLimits(failures=100, timeouts=100)


@dataclass
class LanguageModelHarness:
    """A model server and the adapters that call it. `pauses` are the seconds slept between attempts."""

    server: ModelServer
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    pauses: list[float] = field(default_factory=list)
    made: list[LiteLLMModels] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meters = ModelMeters(self.registry)

    def models(
        self, limits: BreakerLimits = AMPLE, environment: dict[str, str] | None = None, **fields: Any
    ) -> LiteLLMModels:
        """Return models of one profile; `fields` override its settings."""
        settings = {"model": "openai/any", "api_base": self.server.url, "api_key_env": "ANY_KEY", "retries": 0}
        profile = Profile.model_validate(settings | fields)
        variables = {"ANY_KEY": KEY} if environment is None else environment
        outside = EndpointDependencies(
            environment=variables, sleep=self._pause, random_number=lambda: 1.0, breaker_limits=limits
        )
        self.made.append(LiteLLMModels(Profiles({"default": profile}), self.meters, outside))
        return self.made[-1]

    def number(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"modestream_model_{name}", {"profile": "default"} | labels)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def ask(models: LiteLLMModels) -> ModelAnswer[Understanding]:
    return await models.ask("understand.turn", "understand", PROMPT, Understanding)


async def failure(models: LiteLLMModels) -> Exception:
    with pytest.raises((Unavailable, Unanswerable)) as failed:
        await ask(models)
    return failed.value
