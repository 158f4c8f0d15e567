"""One profile's way to its model: bounded, timed, tried again where that helps, resting when it fails.

Enters: the arguments of a request. Leaves: a completion; or `Unavailable`, `Unanswerable`, with words for a person.
Guaranteed: never more requests at once than the profile admits, one at a time after a rest; no secret in any message.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.failures import Unavailable
from schemas.language import Profile, Unanswerable
from streams.adapters.language.breaker import BreakerLimits, CircuitBreaker
from streams.adapters.language.faults import Fault, fault_of
from streams.adapters.language.litellm_library import Completion, LiteLLMLibrary
from streams.adapters.language.retry_policy import RetryPolicy
from streams.observability.model_metrics import ModelMeters

PLACEHOLDER_API_KEY = "none"
"""Sent to an own server without a key: OpenAI's client wants one, and would take the one meant for OpenAI."""


@dataclass(frozen=True, slots=True)
class EndpointDependencies:
    """What endpoints take from outside, so that tests can give something else."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    breaker_limits: BreakerLimits = field(default_factory=BreakerLimits)
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)


class Endpoint:
    """One profile while the process lives."""

    def __init__(
        self, name: str, profile: Profile, library: LiteLLMLibrary, meters: ModelMeters, outside: EndpointDependencies
    ) -> None:
        self.name = name
        self.profile = profile
        self._library = library
        self._meters = meters
        self._outside = outside
        self._breaker = CircuitBreaker(outside.breaker_limits, outside.now, outside.chance)
        self._free = asyncio.Semaphore(profile.max_concurrency)
        self._calls = self._failures = self._answers = 0
        self._last_error: str | None = None
        meters.watch_breaker(name, lambda: self._breaker.state)

    @property
    def available(self) -> bool:
        """Whether a request may begin now."""
        return self._missing_key() is None and self._breaker.admits

    async def until_available(self) -> None:
        """Wait until a request may begin; for ever where the key is not set, as that takes a restart."""
        if self._missing_key():
            await asyncio.Event().wait()
        await self._breaker.until_admits()

    def status(self) -> dict[str, Any]:
        """Counts and state since the start of the process."""
        return {
            "model": self.profile.model,
            "state": self._breaker.state,
            "calls": self._calls,
            "failures": self._failures,
            "last_error": self._missing_key() or self._last_error,
        }

    def note_unanswerable(self, message: str) -> None:
        """A question was answered, but never validly."""
        self._failures += 1
        self._last_error = message

    async def complete(self, arguments: Mapping[str, Any]) -> Completion:
        """The answer to one question, after at most `retries` attempts more."""
        pacing, attempts = self._outside.retry_policy, 0
        while True:
            outcome = await self._attempt(arguments)
            if isinstance(outcome, Completion):
                return outcome
            attempts += 1
            if not pacing.should_retry(outcome, attempts, self.profile.retries):
                raise self._failure(outcome) from outcome.cause
            await self._outside.sleep(pacing.backoff_s(outcome, attempts, self._outside.chance))

    async def _attempt(self, arguments: Mapping[str, Any]) -> Completion | Fault:
        self._check()
        await self._library.load()
        async with self._free:
            entry = self._entry()
            begun = self._outside.now()
            try:
                async with asyncio.timeout(self.profile.timeout_s):
                    completion = await self._library.complete(self._own_arguments() | dict(arguments))
            except Exception as error:
                fault = fault_of(error, self.name, self.profile, self._secrets())
                self._note_fault(entry, fault, begun)
                return fault
            except BaseException:
                self._breaker.left(entry)
                raise
            self._note_answer(begun)
            return self._priced(completion)

    def _check(self) -> None:
        """Nobody waits for a place, or for the library, only to find out that no request may begin."""
        if problem := self._missing_key():
            raise Unavailable(problem)
        if not self._breaker.admits:
            raise self._resting()

    def _entry(self) -> int:
        entry = self._breaker.enter()
        if entry is None:
            raise self._resting()
        return entry

    def _resting(self) -> Unavailable:
        return Unavailable(f"the model {self.profile.model} (profile {self.name}) rests; before: {self._last_error}")

    def _own_arguments(self) -> dict[str, Any]:
        profile = self.profile
        chosen = {"api_base": profile.api_base, "temperature": profile.temperature, "api_key": self._key()}
        sent = {name: value for name, value in chosen.items() if value is not None}
        return {"model": profile.model, "max_tokens": profile.max_tokens, "timeout": profile.timeout_s} | sent

    def _key(self) -> str | None:
        if self.profile.api_key_env:
            return self._outside.environment.get(self.profile.api_key_env)
        own_server = self.profile.api_base is not None and self.profile.model.startswith("openai/")
        return PLACEHOLDER_API_KEY if own_server else None

    def _missing_key(self) -> str | None:
        name = self.profile.api_key_env
        if name is None or self._outside.environment.get(name):
            return None
        return f"the profile {self.name} takes its key from {name}, which is not set: set it and start again"

    def _secrets(self) -> list[str]:
        return [key] if (key := self._key()) else []

    def _priced(self, completion: Completion) -> Completion:
        price_in, price_out = self.profile.input_cost_per_token, self.profile.output_cost_per_token
        if price_in is None and price_out is None:
            return completion
        cost = completion.tokens_in * (price_in or 0.0) + completion.tokens_out * (price_out or 0.0)
        return replace(completion, cost_usd=cost)

    def _note_answer(self, begun: float) -> None:
        self._calls += 1
        self._answers += 1
        self._breaker.passed()
        self._meters.called(self.name, "answered", self._outside.now() - begun)

    def _note_fault(self, entry: int, fault: Fault, begun: float) -> None:
        self._calls += 1
        self._last_error = fault.message
        self._meters.called(self.name, fault.kind, self._outside.now() - begun)
        if self._is_about_the_text(fault):
            self._breaker.passed()
        else:
            self._failures += 1
            rest_s = fault.retry_after_s if self._outside.retry_policy.exceeds_max_retry_after(fault) else 0.0
            self._breaker.failed(entry, timed_out=fault.kind == "timeout", rest_s=rest_s)

    def _is_about_the_text(self, fault: Fault) -> bool:
        """A request like others that were answered is refused for its text; the first of all for the settings."""
        return fault.kind == "refused_text" or (fault.kind == "refused" and self._answers > 0)

    def _failure(self, fault: Fault) -> Exception:
        return (Unanswerable if self._is_about_the_text(fault) else Unavailable)(fault.message)
