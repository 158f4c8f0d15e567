"""Exponential backoff with full jitter between the attempts of one call.

Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streams.adapters.language.faults import Fault


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The bound of the first pause, which doubles with each attempt, up to `max_backoff_s`; in seconds.

    If the provider asks for more than `max_retry_after_s`, the call is not retried, and the circuit breaker opens.
    """

    initial_backoff_s: float = 0.5
    max_backoff_s: float = 8.0
    max_retry_after_s: float = 10.0

    def should_retry(self, fault: Fault, attempts: int, retries: int) -> bool:
        """True if a call may be retried after this many attempts."""
        return fault.is_transient and attempts <= retries and not self.exceeds_max_retry_after(fault)

    def exceeds_max_retry_after(self, fault: Fault) -> bool:
        """True if the provider asks for a longer pause than one call waits."""
        return fault.retry_after_s > self.max_retry_after_s

    def backoff_s(self, fault: Fault, attempts: int, random_number: Callable[[], float]) -> float:
        """Return the seconds until the next attempt; at least what the provider asked for."""
        bound: float = min(self.max_backoff_s, self.initial_backoff_s * 2.0 ** (attempts - 1))
        return fault.retry_after_s + bound * random_number()
