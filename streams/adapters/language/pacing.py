"""How long to wait between attempts: exponential, with full jitter (the scheme that AWS recommends).

Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streams.adapters.language.faults import Fault


@dataclass(frozen=True, slots=True)
class Pacing:
    """Seconds: the bound of the first pause, which doubles, up to `longest_s`.

    A provider that asks for a longer pause than `longest_asked_s` is not asked again by the same call: it rests.
    """

    first_s: float = 0.5
    longest_s: float = 8.0
    longest_asked_s: float = 10.0

    def again(self, fault: Fault, attempts: int, retries: int) -> bool:
        """Whether to try again after this many attempts."""
        return fault.passes and attempts <= retries and not self.too_long(fault)

    def too_long(self, fault: Fault) -> bool:
        """Whether the provider wants more time than one call has."""
        return fault.retry_after_s > self.longest_asked_s

    def pause_s(self, fault: Fault, attempts: int, chance: Callable[[], float]) -> float:
        """Seconds until the next attempt; never less than the provider asked for."""
        bound: float = min(self.longest_s, self.first_s * 2.0 ** (attempts - 1))
        return fault.retry_after_s + bound * chance()
