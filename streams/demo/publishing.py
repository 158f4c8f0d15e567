"""The demo's writes: modes, turns and a correction. All are idempotent, so that a second run changes nothing."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modestream_client import MemoryClient, Remembered

EMBEDDING_TIMEOUT_S = 60.0
"""Limit of the wait for vectors. Ten seconds suffice on a slow laptop; without vectors the search is lexical."""

EMBEDDING_POLL_INTERVAL_S = 0.25
"""The pause between two checks of the embedding progress."""

PrintLine = Callable[[str], None]
Json = dict[str, Any]


async def declare_modes(memory: MemoryClient, modes: Sequence[Json], print_line: PrintLine) -> None:
    """Declare modes in addition to `general`."""
    for wanted in modes:
        mode = await memory.declare_mode(**wanted)
        print_line(f"Declared mode {mode.name}: {mode.description} (embedder {mode.embedder}, {mode.decay} decay).")


async def publish_turns(memory: MemoryClient, turns: Sequence[Json], print_line: PrintLine) -> dict[str, Remembered]:
    """Publish turns in order, edits included; return the reply to the last text of each turn."""
    ids = {turn["turn_id"] for turn in turns}
    speakers = " and ".join(dict.fromkeys(turn["speaker"] for turn in turns))
    print_line(f"Publishing {len(ids)} turns of a conversation of {speakers}; {len(turns) - len(ids)} is edited.")
    began = time.perf_counter()
    new: set[str] = set()
    accepted: dict[str, Remembered] = {}
    for turn in turns:
        remembered = accepted[turn["turn_id"]] = await memory.remember(**turn)
        # An edit has version 2 from the start; in a second run the first text of its turn returns version 2, too.
        if not remembered.duplicate and remembered.version == 1:
            new.add(turn["turn_id"])
    known = len(ids) - len(new)
    print_line(f"Accepted in {time.perf_counter() - began:.1f} s: {len(new)} new, {known} known from an earlier run.")
    return accepted


async def correct_modes(
    memory: MemoryClient, corrections: Sequence[Json], accepted: Mapping[str, Remembered], print_line: PrintLine
) -> None:
    """Move turns to the modes that they belong to."""
    for wanted in corrections:
        turn, mode = accepted[wanted["turn_id"]], wanted["mode"]
        record = await memory.set_memory_mode(turn.memory_id or "", mode, project_id=wanted["project_id"])
        change = f"was {turn.mode} ({turn.mode_source}), is now {record.mode}"
        print_line(f"Turn {turn.turn_id} belongs to {mode}: it {change if turn.mode != mode else 'is there already'}.")


async def wait_until_embedded(memory: MemoryClient, print_line: PrintLine) -> None:
    """Wait for the vectors, up to a limit."""
    until, printed = time.monotonic() + EMBEDDING_TIMEOUT_S, None
    while (counts := await _counts(memory))["pending"] and time.monotonic() < until:
        if counts != printed:
            print_line(f"Embedding: {counts['ready']} of {counts['eligible']} done.")
            printed = counts
        await asyncio.sleep(EMBEDDING_POLL_INTERVAL_S)
    missing = counts["pending"]
    print_line(f"{missing} have no vector yet; lexical search finds them." if missing else "All are embedded.")


async def _counts(memory: MemoryClient) -> dict[str, int]:
    modes = (await memory.command("health"))["modes"].values()
    return {name: sum(counts[name] for counts in modes) for name in ("eligible", "pending", "ready")}
