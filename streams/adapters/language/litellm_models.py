"""Language models behind the profiles of the settings; LiteLLM is loaded at the first prompt."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from schemas.failures import Unavailable
from schemas.models.language import (
    AnswerT,
    Chat,
    ChatAnswer,
    Heard,
    ModelAnswer,
    OnText,
    Profile,
    Profiles,
    Prompt,
    Unanswerable,
)
from streams.adapters.language.endpoint import Endpoint, EndpointDependencies
from streams.adapters.language.litellm_library import Completion, LiteLLMLibrary
from streams.adapters.language.structured_output import CompletionRequest, InvalidAnswer, chat_arguments, read_answer
from streams.observability.metrics import ModelMeters

FINISH_FILTERED, FINISH_CUT_OFF = "content_filter", "length"
"""The `finish_reason` of an answer that the provider's filter stopped, and of one that reached `max_tokens`."""


class LiteLLMModels:
    """Implements `agents.ports.models.LanguageModel`: an endpoint for each profile, on one event loop."""

    def __init__(self, profiles: Profiles, meters: ModelMeters, deps: EndpointDependencies | None = None) -> None:
        """Take the profiles. API keys are read when they are needed, and nothing is loaded yet."""
        deps = deps or EndpointDependencies()
        self._profiles = profiles
        self._meters = meters
        key_names = sorted({profile.api_key_env for _, profile in profiles.items() if profile.api_key_env})
        self._library = LiteLLMLibrary(deps.environment[name] for name in key_names if name in deps.environment)
        self._endpoints = {
            name: Endpoint(name, profile, self._library, meters, deps) for name, profile in profiles.items()
        }

    async def prepare(self) -> None:
        """Load LiteLLM now, so that the first prompt does not wait for it."""
        await self._library.load()

    async def ask(
        self, step: str, role: str, prompt: Prompt, answer: type[AnswerT], profile: str | None = None
    ) -> ModelAnswer[AnswerT]:
        endpoint = self._required(step, role, profile)
        request = CompletionRequest(prompt, answer, endpoint.profile.structured_output)
        calls: list[Completion] = []
        try:
            value = await self._answer(endpoint, request, answer, calls)
        except Unanswerable as problem:
            endpoint.note_unanswerable(str(problem))
            problem.tokens = sum(completion.tokens_in + completion.tokens_out for completion in calls)
            self._meters.answered(endpoint.name, "unanswerable")
            raise
        self._meters.answered(endpoint.name, "valid" if len(calls) == 1 else "repaired")
        costs = [completion.cost_usd for completion in calls]
        prices = [cost for cost in costs if cost is not None]
        return ModelAnswer(
            answer=value,
            profile=endpoint.name,
            prompt=prompt.version,
            tokens_in=sum(completion.tokens_in for completion in calls),
            tokens_out=sum(completion.tokens_out for completion in calls),
            # Unknown where one of the prices is.
            cost_usd=sum(prices) if len(prices) == len(costs) else None,
            repaired=len(calls) > 1,
        )

    async def continue_chat(
        self, step: str, role: str, chat: Chat, profile: str | None = None, on_text: OnText | None = None
    ) -> ChatAnswer:
        endpoint = self._required(step, role, profile)
        arguments = chat_arguments(chat, endpoint.profile.structured_output)
        completion = await self._complete(endpoint, arguments, [], on_text)
        problem = f"the provider's filter stopped the answer of {endpoint.profile.model}"
        if completion.finish_reason != FINISH_FILTERED:
            problem = "" if completion.text else f"the answer of {endpoint.profile.model} has no text"
        self._meters.answered(endpoint.name, "unanswerable" if problem else "valid")
        if problem:
            endpoint.note_unanswerable(problem)
            raise Unanswerable(problem)
        return ChatAnswer(
            # JSON may have halves of characters.
            text=completion.text.encode("utf-8", "replace").decode(),
            profile=endpoint.name,
            finish_reason=completion.finish_reason,
            tokens_in=completion.tokens_in,
            tokens_out=completion.tokens_out,
            cost_usd=completion.cost_usd,
        )

    async def transcribe(self, step: str, role: str, sound: bytes, name: str) -> Sequence[Heard]:
        endpoint = self._required(step, role, None)
        heard = await endpoint.transcribe(sound, name)
        self._meters.answered(endpoint.name, "valid")
        return heard

    def has_role(self, role: str) -> bool:
        return self._profiles.profile_of(role) is not None

    def available(self, step: str, role: str, profile: str | None = None) -> bool:
        endpoint = self._endpoint(step, role, profile)
        return endpoint is not None and endpoint.available

    async def until_available(self, step: str, role: str, profile: str | None = None) -> None:
        endpoint = self._endpoint(step, role, profile)
        if endpoint is None:
            await asyncio.Event().wait()
        else:
            await endpoint.until_available()

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        return {name: endpoint.status() for name, endpoint in self._endpoints.items()}

    async def close(self) -> None:
        await self._library.close()

    def _endpoint(self, step: str, role: str, profile: str | None) -> Endpoint | None:
        name = self._profiles.profile_for(step, role, profile)
        return None if name is None else self._endpoints[name]

    def _required(self, step: str, role: str, profile: str | None) -> Endpoint:
        endpoint = self._endpoint(step, role, profile)
        if endpoint is None:
            named = "no language model is configured" if profile is None else f"there is no profile {profile!r}"
            raise Unavailable(f"{named}: set LLM_PROFILES")
        return endpoint

    async def _answer(
        self, endpoint: Endpoint, request: CompletionRequest, answer: type[AnswerT], calls: list[Completion]
    ) -> AnswerT:
        """Return the first valid answer of two attempts; append the completions to `calls`."""
        first = await self._complete(endpoint, request.arguments(), calls)
        try:
            return _read(first, answer, endpoint.profile)
        except InvalidAnswer as problem:
            repair = request.repair(first.text, str(problem))
        second = await self._complete(endpoint, repair, calls)
        try:
            return _read(second, answer, endpoint.profile)
        except InvalidAnswer as problem:
            model = f"the model {endpoint.profile.model} (profile {endpoint.name})"
            raise Unanswerable(f"{model} gave no valid answer, even after one repair: {problem}") from problem

    async def _complete(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], calls: list[Completion], on_text: OnText | None = None
    ) -> Completion:
        completion = await endpoint.complete(arguments, on_text)
        calls.append(completion)
        self._meters.spent(endpoint.name, completion.tokens_in, completion.tokens_out, completion.cost_usd)
        return completion


def _read(completion: Completion, answer: type[AnswerT], profile: Profile) -> AnswerT:
    """Return the answer in a completion. Raises InvalidAnswer, or Unanswerable if the provider's filter stopped it."""
    if completion.finish_reason == FINISH_FILTERED:
        raise Unanswerable(f"the provider's filter stopped the answer of {profile.model}")
    try:
        return read_answer(completion.text, answer)
    except InvalidAnswer as problem:
        if completion.finish_reason == FINISH_CUT_OFF:
            raise InvalidAnswer(f"{problem} (it was cut off at {profile.max_tokens} tokens)") from problem
        raise
