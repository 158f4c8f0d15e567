"""Statistics of rule-based item extraction in long conversations: `python -m bench.items DIR...`, without a broker.

Reads folders of `conv-*.json` in LoCoMo's format. Prints items per turn and of each kind, the share of spans with
exactly the item's text, the number of claims, and the processor time per turn, as a table and as one line of JSON.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agents.rules.items.extracting import ExtractedItem, extract_by_rules
from agents.rules.memory.versions import identify_turn, next_memory
from bench.harness.report import Report
from schemas.messages.turns import Turn
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL
from training.ranking.conversations import read_conversations

Pairs = Sequence[tuple[Memory, ExtractedItem]]
"""Memories and the items extracted from them."""


def main() -> None:
    """Measure each folder separately."""
    parser = argparse.ArgumentParser(prog="python -m bench.items", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="number of items to print for manual review")
    options = parser.parse_args()
    for folder in options.folders:
        report = Report(_print_line)
        found = _measure(folder, report)
        report.print()
        for memory, item in random.Random(0).sample(found, min(options.sample, len(found))):
            _print_line(f"{item.kind} | {memory.speaker or memory.role} | {item.text} | {item.claim or ''}")


def _measure(folder: Path, report: Report) -> Pairs:
    turns = [(turn, place) for one in read_conversations(folder) for place, turn in enumerate(one.turns)]
    memories = [_memory_of(turn, place) for turn, place in turns]
    began = time.process_time()
    found = [(memory, item) for memory in memories for item in extract_by_rules(memory)]
    took = time.process_time() - began
    report.section(folder.name)
    report.fact("turns", "turns", len(memories))
    report.fact("items", "items", len(found))
    report.ratio("items_a_turn", "items a turn", len(found) / len(memories))
    for kind, count in Counter(item.kind or "segment" for _, item in found).most_common():
        report.fact(f"items_{kind}", f"  {kind}", count)
    report.ratio("exact", "share of spans that are exact", sum(map(_is_exact, found)) / max(1, len(found)), "1")
    report.fact("claims", "items with a claim", sum(item.claim is not None for _, item in found))
    report.number("turn_us", "own time of a turn", took / len(memories) * 1e6, "us")
    report.number("items_s", "items a second", len(found) / took, "1/s")
    return found


def _memory_of(turn: Turn, place: int) -> Memory:
    """Return the memory of a turn."""
    assert turn.occurred_at is not None
    return next_memory(
        turn, identify_turn(turn, turn.occurred_at), None, (GENERAL, "fallback"), place, asks_model=False
    )


def _is_exact(pair: tuple[Memory, ExtractedItem]) -> bool:
    """Return whether the item's text equals the text at its span."""
    memory, item = pair
    texts = {one.uri: one.text or "" for one in memory.resources} | {None: memory.text}
    return texts[item.resource][item.start : item.end] == item.text


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
