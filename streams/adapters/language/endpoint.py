"""The requests of one profile: limited concurrency, timeout, retries with backoff, circuit breaker.

Leaves: a completion; or `Unavailable` or `Unanswerable`, with a message for operators and no secret in it. Guaranteed:
at most `max_concurrency` requests at once, one at a time while the breaker is half-open.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from schemas.failures import Unavailable
from schemas.models.language import Heard, OnText, Profile, Unanswerable
from streams.adapters.language.faults import Fault, RetryPolicy, fault_of
from streams.adapters.language.litellm_library import Completion, LiteLLMLibrary
from streams.observability.metrics import ModelMeters

# A circuit breaker: opens after repeated failures of a profile, then probes it with single requests.
#
# Guaranteed: no attempt starts while it is open, and only one at a time while it is half-open, until one succeeds.

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """The failures or timeouts in a row that open a breaker, and for how long: doubled each time, up to a maximum."""

    failures: int = 5
    timeouts: int = 3
    initial_open_s: float = 1.0
    max_open_s: float = 30.0


JITTER = 0.25
"""The share of the open time that is random, so that workers do not all return at the same moment."""

MAX_RETRY_AFTER_S = 120.0
"""The longest accepted Retry-After: a wrong header must not stop understanding for a day."""


class CircuitBreaker:
    """Counts failures and timeouts in a row; attempts from before it opened are ignored."""

    def __init__(self, limits: BreakerLimits, now: Callable[[], float], random_number: Callable[[], float]) -> None:
        """`now` is a monotonic clock in seconds, `random_number` gives numbers in [0, 1)."""
        self._limits = limits
        self._now = now
        self._random_number = random_number
        self._changed = asyncio.Event()
        self._entries = 0
        self._probe: int | None = None
        self._open_until: float | None = None
        self._failures = 0
        self._timeouts = 0
        self._times_opened = 0

    @property
    def state(self) -> BreakerState:
        """Closed: attempts may start; open: none may; half-open: one may, or is running."""
        if self._open_until is None:
            return "closed"
        return "open" if self._now() < self._open_until else "half_open"

    @property
    def admits(self) -> bool:
        return self.state == "closed" or (self.state == "half_open" and self._probe is None)

    def enter(self) -> int | None:
        """Start an attempt, to be ended by `passed`, `failed` or `left`; None if none may start."""
        if not self.admits:
            return None
        self._entries += 1
        if self.state == "half_open":
            self._probe = self._entries
        return self._entries

    def passed(self) -> None:
        """Note that any attempt was answered, so the profile works."""
        self._open_until = self._probe = None
        self._failures = self._timeouts = self._times_opened = 0
        self._notify()

    def failed(self, entry: int, *, timed_out: bool = False, retry_after_s: float = 0.0) -> None:
        """Note that an attempt failed. `retry_after_s` above 0, asked for by the provider, opens it at once."""
        if self._open_until is not None and entry != self._probe:
            return
        self._failures += 1
        self._timeouts = self._timeouts + 1 if timed_out else 0
        is_exhausted = self._failures >= self._limits.failures or self._timeouts >= self._limits.timeouts
        if is_exhausted or retry_after_s > 0 or entry == self._probe:
            open_s = min(self._limits.max_open_s, self._limits.initial_open_s * 2.0**self._times_opened)
            open_s *= 1 - JITTER * self._random_number()
            self._times_opened += 1
            self._probe = None
            self._open_until = self._now() + max(min(retry_after_s, MAX_RETRY_AFTER_S), open_s)
        self._notify()

    def left(self, entry: int) -> None:
        """Note that an attempt was cancelled, which says nothing about the profile."""
        if entry == self._probe:
            self._probe = None
            self._notify()

    async def until_admits(self) -> None:
        """Wait until an attempt may start; of several waiters, only the first to enter may get in."""
        while not self.admits:
            changed = self._changed
            remaining = None if self._probe is not None else max(0.0, (self._open_until or 0.0) - self._now())
            try:
                async with asyncio.timeout(remaining):
                    await changed.wait()
            except TimeoutError:
                continue

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


PLACEHOLDER_API_KEY = "none"
"""The key for an own server without one: OpenAI's client needs one, and would send the one meant for OpenAI."""

TRANSCRIPTION_TIMES = 10
"""How many times as long as an answer a transcription may take: minutes of sound are heard at a time."""

UNTIMED = "gpt-4o"
"""In the names of models that hear and give no times."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class EndpointDependencies:
    """The environment, clock, randomness and limits of endpoints; tests replace them."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], float] = time.monotonic
    random_number: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    breaker_limits: BreakerLimits = field(default_factory=BreakerLimits)
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)


class Endpoint:
    """Sends the requests of one profile, and counts them."""

    def __init__(
        self, name: str, profile: Profile, library: LiteLLMLibrary, meters: ModelMeters, deps: EndpointDependencies
    ) -> None:
        self.name = name
        self.profile = profile
        self._library = library
        self._meters = meters
        self._deps = deps
        self._breaker = CircuitBreaker(deps.breaker_limits, deps.now, deps.random_number)
        self._slots = asyncio.Semaphore(profile.max_concurrency)
        self._calls = self._failures = self._answers = self._tokens_in = self._tokens_out = 0
        self._cost_usd: float | None = None
        self._last_error: str | None = None
        meters.watch_breaker(name, lambda: self._breaker.state)

    @property
    def available(self) -> bool:
        return self._missing_key() is None and self._breaker.admits

    async def until_available(self) -> None:
        """Wait until a request may start; for ever without the API key, as setting it takes a restart."""
        if self._missing_key():
            await asyncio.Event().wait()
        await self._breaker.until_admits()

    def status(self) -> dict[str, Any]:
        """Return the state, and the counts since the start of the process; the cost is None without a known price."""
        return {
            "model": self.profile.model,
            "state": self._breaker.state,
            "calls": self._calls,
            "failures": self._failures,
            "tokens_in": self._tokens_in,
            "tokens_out": self._tokens_out,
            "cost_usd": self._cost_usd,
            "last_error": self._missing_key() or self._last_error,
        }

    def note_unanswerable(self, message: str) -> None:
        """Count a prompt that got no valid answer."""
        self._failures += 1
        self._last_error = message

    async def complete(self, arguments: Mapping[str, Any], on_text: OnText | None = None) -> Completion:
        """Return the completion of one request, after at most `retries` retries.

        `on_text` gets the pieces of its text; after the first one it is not tried again.
        """
        has_begun = False

        def heard(piece: str) -> None:
            nonlocal has_begun
            has_begun = True
            if on_text is not None:
                on_text(piece)

        def call(limit: asyncio.Timeout) -> Awaitable[Completion]:
            streamed = None if on_text is None else self._extending(limit, heard)
            return self._library.complete(self._profile_arguments() | dict(arguments), streamed)

        completion = await self._repeat(call, self.profile.timeout_s, lambda: has_begun)
        price_in, price_out = self.profile.input_cost_per_token, self.profile.output_cost_per_token
        if price_in is not None or price_out is not None:
            # The profile's prices replace those that LiteLLM knows.
            cost = completion.tokens_in * (price_in or 0.0) + completion.tokens_out * (price_out or 0.0)
            completion = replace(completion, cost_usd=cost)
        self._tokens_in += completion.tokens_in
        self._tokens_out += completion.tokens_out
        if completion.cost_usd is not None:
            self._cost_usd = (self._cost_usd or 0.0) + completion.cost_usd
        return completion

    async def transcribe(self, sound: bytes, name: str) -> list[Heard]:
        """Return the transcript of a sound, after at most `retries` retries."""
        timeout_s = TRANSCRIPTION_TIMES * self.profile.timeout_s
        arguments = {name: value for name, value in self._profile_arguments().items() if name != "max_tokens"}
        # A model that gives no times refuses to be asked for them.
        answer_format = "json" if UNTIMED in self.profile.model else "verbose_json"
        arguments |= {"file": (name, sound), "response_format": answer_format, "timeout": timeout_s}
        return await self._repeat(lambda _: self._library.transcribe(arguments), timeout_s)

    async def _repeat(
        self,
        call: Callable[[asyncio.Timeout], Awaitable[Result]],
        timeout_s: float,
        has_begun: Callable[[], bool] = lambda: False,
    ) -> Result:
        policy, attempts = self._deps.retry_policy, 0
        while True:
            outcome = await self._attempt(call, timeout_s)
            if not isinstance(outcome, Fault):
                return outcome
            attempts += 1
            if has_begun() or not policy.should_retry(outcome, attempts, self.profile.retries):
                error = Unanswerable if self._is_about_the_text(outcome) else Unavailable
                raise error(outcome.message) from outcome.cause
            await self._deps.sleep(policy.backoff_s(outcome, attempts, self._deps.random_number))

    async def _attempt(self, call: Callable[[asyncio.Timeout], Awaitable[Result]], timeout_s: float) -> Result | Fault:
        # Before the library is loaded and a slot is free: without a wait where no request may start.
        if problem := self._missing_key():
            raise Unavailable(problem)
        if not self._breaker.admits:
            raise self._breaker_open()
        await self._library.load()
        async with self._slots:
            entry = self._breaker.enter()
            if entry is None:
                raise self._breaker_open()
            started = self._deps.now()
            try:
                async with asyncio.timeout(timeout_s) as limit:
                    answer = await call(limit)
            except Exception as error:
                secrets = [key] if (key := self._key()) else []
                fault = fault_of(error, self.name, self.profile, secrets)
                self._calls += 1
                self._last_error = fault.message
                self._meters.called(self.name, fault.kind, self._deps.now() - started)
                if self._is_about_the_text(fault):
                    self._breaker.passed()
                else:
                    self._failures += 1
                    retry_after_s = (
                        fault.retry_after_s if self._deps.retry_policy.exceeds_max_retry_after(fault) else 0.0
                    )
                    self._breaker.failed(entry, timed_out=fault.kind == "timeout", retry_after_s=retry_after_s)
                return fault
            except BaseException:
                self._breaker.left(entry)
                raise
            self._calls += 1
            self._answers += 1
            self._breaker.passed()
            self._meters.called(self.name, "answered", self._deps.now() - started)
        return answer

    def _extending(self, limit: asyncio.Timeout, on_text: OnText) -> OnText:
        """Return `on_text`, each call of which gives the next piece the whole time."""
        loop = asyncio.get_running_loop()

        def heard(piece: str) -> None:
            if not limit.expired():
                limit.reschedule(loop.time() + self.profile.timeout_s)
                on_text(piece)

        return heard

    def _breaker_open(self) -> Unavailable:
        return Unavailable(
            f"the model {self.profile.model} (profile {self.name}) is paused after failures, the last one:"
            f" {self._last_error}"
        )

    def _profile_arguments(self) -> dict[str, Any]:
        profile = self.profile
        optional = {"api_base": profile.api_base, "temperature": profile.temperature, "api_key": self._key()}
        always = {"model": profile.model, "max_tokens": profile.max_tokens, "timeout": profile.timeout_s}
        return always | {name: value for name, value in optional.items() if value is not None}

    def _key(self) -> str | None:
        if self.profile.api_key_env:
            return self._deps.environment.get(self.profile.api_key_env)
        is_own_server = self.profile.api_base is not None and self.profile.model.startswith("openai/")
        return PLACEHOLDER_API_KEY if is_own_server else None

    def _missing_key(self) -> str | None:
        name = self.profile.api_key_env
        if name is None or self._deps.environment.get(name):
            return None
        return f"the profile {self.name} takes its API key from {name}, which is not set: set it and restart the worker"

    def _is_about_the_text(self, fault: Fault) -> bool:
        """True if the text was refused: a plain refusal means the settings, unless a request was answered before."""
        return fault.kind == "refused_text" or (fault.kind == "refused" and self._answers > 0)
