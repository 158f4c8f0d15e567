"""What `checks.trips` counts, on functions whose calls are known."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from agents.rules.text import tokenizer
from checks import trips
from checks.trips import LIMITS, Trip, exceeded, observe


async def fold() -> None:
    tokenizer.fold("Grün")


async def test_files_of_the_product_are_counted_and_those_of_tests_are_not() -> None:
    assert (await observe(fold)).files == [str(Path(tokenizer.__file__).relative_to(trips.ROOT))]


async def test_files_of_an_idle_pipeline_are_left_out() -> None:
    assert (await observe(fold)).without((await observe(fold)).files).functions == set()


async def test_frames_are_those_of_the_product_at_the_effect() -> None:
    with patch.object(trips, "EFFECTS", {tokenizer.fold.__code__}):
        assert (await observe(fold)).frames == 1


def test_only_figures_above_their_limit_are_named() -> None:
    taken = {name: Trip(frames=limit.frames) for name, limit in LIMITS.items()}
    taken["turn"] = replace(taken["turn"], frames=99)
    assert exceeded(taken) == [f"turn: 99 frames, and the limit is {LIMITS['turn'].frames}"]
