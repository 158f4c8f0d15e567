"""How long to wait between attempts: exponential, with full jitter (the scheme that AWS recommends).

Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streams.adapters.language.faults import Fault


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Seconds: the bound of the first pause, which doubles, up to `max_backoff_s`.

    A provider that asks for a longer pause than `max_retry_after_s` is not asked again by the same call: it rests.
    """

    initial_backoff_s: float = 0.5
    max_backoff_s: float = 8.0
    max_retry_after_s: float = 10.0

    def should_retry(self, fault: Fault, attempts: int, retries: int) -> bool:
        """Whether to try again after this many attempts."""
        return fault.is_transient and attempts <= retries and not self.exceeds_max_retry_after(fault)

    def exceeds_max_retry_after(self, fault: Fault) -> bool:
        """Whether the provider wants more time than one call has."""
        return fault.retry_after_s > self.max_retry_after_s

    def backoff_s(self, fault: Fault, attempts: int, chance: Callable[[], float]) -> float:
        """Seconds until the next attempt; never less than the provider asked for."""
        bound: float = min(self.max_backoff_s, self.initial_backoff_s * 2.0 ** (attempts - 1))
        return fault.retry_after_s + bound * chance()
