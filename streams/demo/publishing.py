"""What the demo writes: modes, turns and a correction, all of which a second run finds as they are."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streams.client import MemoryClient, Remembered

EMBEDDING_TIMEOUT_S = 60.0
"""How long to wait for the vectors. Ten would do on a slow laptop; without them the questions go by words."""

EMBEDDING_POLL_INTERVAL_S = 0.25
"""Between two looks at the progress of the embedding."""

Tell = Callable[[str], None]
Json = dict[str, Any]


async def declare_modes(memory: MemoryClient, modes: Sequence[Json], tell: Tell) -> None:
    """Declare modes beside `general`, which is there."""
    for wanted in modes:
        mode = await memory.declare_mode(**wanted)
        tell(f"Mode {mode.name}, beside general: {mode.description} (embedder {mode.embedder}, {mode.decay} decay).")


async def publish_turns(memory: MemoryClient, turns: Sequence[Json], tell: Tell) -> dict[str, Remembered]:
    """Publish turns in their order, edits included; what the service replied to the last text of each turn."""
    ids = {turn["turn_id"] for turn in turns}
    tell(f"Publishing {len(ids)} turns of a conversation between {_names(turns)}; {len(turns) - len(ids)} is edited.")
    began = time.perf_counter()
    new: set[str] = set()
    accepted: dict[str, Remembered] = {}
    for turn in turns:
        remembered = accepted[turn["turn_id"]] = await memory.remember(**turn)
        # An edit has version 2 from its first time on; in a second run its first text comes back with version 2, too.
        if not remembered.duplicate and remembered.version == 1:
            new.add(turn["turn_id"])
    known = len(ids) - len(new)
    tell(f"Accepted in {time.perf_counter() - began:.1f} s: {len(new)} new, {known} known from an earlier run.")
    return accepted


async def correct_modes(
    memory: MemoryClient, corrections: Sequence[Json], accepted: Mapping[str, Remembered], tell: Tell
) -> None:
    """Put turns into the mode that they belong to."""
    for wanted in corrections:
        turn, mode = accepted[wanted["turn_id"]], wanted["mode"]
        whole = await memory.set_memory_mode(turn.memory_id or "", mode, project_id=wanted["project_id"])
        was = (
            f"was {turn.mode} ({turn.mode_source}), is now {whole['mode']}" if turn.mode != mode else "is there already"
        )
        tell(f"Turn {turn.turn_id} belongs to {mode}: it {was}.")


async def wait_until_embedded(memory: MemoryClient, tell: Tell) -> None:
    """Wait for the vectors, for a while."""
    until, told = time.monotonic() + EMBEDDING_TIMEOUT_S, None
    while (counts := await _counts(memory))["pending"] and time.monotonic() < until:
        if counts != told:
            tell(f"Embedding: {counts['ready']} of {counts['eligible']} done.")
            told = counts
        await asyncio.sleep(EMBEDDING_POLL_INTERVAL_S)
    missing = counts["pending"]
    tell(f"{missing} without a vector yet; they are found by their words." if missing else "All are embedded.")


async def _counts(memory: MemoryClient) -> dict[str, int]:
    modes = (await memory.command("health"))["modes"].values()
    return {name: sum(counts[name] for counts in modes) for name in ("eligible", "pending", "ready")}


def _names(turns: Sequence[Json]) -> str:
    return " and ".join(dict.fromkeys(turn["speaker"] for turn in turns))
