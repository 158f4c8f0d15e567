"""Profiles of the property tests: which examples they run, and how many.

`fixed` runs the same examples every time, `random` others in each run, `thorough` ten times as many others. `make test`
runs the first two, `make test-properties` the third; of the random ones the command with its seed is printed.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as some

USUAL_EXAMPLES = 100
"""Examples of a property that names no number of its own."""

# No example is too slow: the machine is shared.
UNTIMED = [HealthCheck.too_slow, HealthCheck.data_too_large]
SHARED_FIXTURE = [*UNTIMED, HealthCheck.function_scoped_fixture]
"""For a property whose examples share a fixture, and clear what they leave in it."""

SEEDS = some.integers(0, 2**32 - 1)
"""For a property that draws its data by itself: some thousands of numbers."""


def register_profiles() -> None:
    """Make the profiles known to Hypothesis, and choose `fixed`."""
    untimed = settings(
        max_examples=USUAL_EXAMPLES, deadline=None, database=None, suppress_health_check=UNTIMED, print_blob=True
    )
    settings.register_profile("fixed", untimed, derandomize=True)
    settings.register_profile("random", untimed, derandomize=False)
    settings.register_profile("thorough", untimed, derandomize=False, max_examples=10 * USUAL_EXAMPLES)
    settings.load_profile("fixed")


def scaled(examples: int) -> int:
    """Return how many examples a property runs that runs as many as this by `fixed` and `random`."""
    return examples * settings().max_examples // USUAL_EXAMPLES
