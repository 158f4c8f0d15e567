"""What rules find in long conversations: `python -m bench.items DIR...`, without a broker.

Enters: folders of `conv-*.json` in LoCoMo's format, which are read and not copied. Leaves: items a turn and of each
kind, the share of spans that say exactly what the item says, how many have a claim, and the time of this process that
a turn takes. The JSON of the last line is for programs.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agents.rules.items.extracting import extract_by_rules
from agents.rules.items.found import ExtractedItem
from agents.rules.memory.versions import identify_turn, next_memory
from bench.report import Report
from schemas.memories import Memory
from schemas.modes import GENERAL
from schemas.turns import Turn
from training.ranking.conversations import read_conversations

Pairs = Sequence[tuple[Memory, ExtractedItem]]
"""What was found, with where."""


def main() -> None:
    """Measure each folder by itself."""
    parser = argparse.ArgumentParser(prog="python -m bench.items", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="print so many items, to judge them by hand")
    options = parser.parse_args()
    for folder in options.folders:
        report = Report(_tell)
        found = _measured(folder, report)
        report.print()
        for memory, item in random.Random(0).sample(found, min(options.sample, len(found))):
            _tell(f"{item.kind} | {memory.speaker or memory.role} | {item.text} | {item.claim or ''}")


def _measured(folder: Path, report: Report) -> Pairs:
    memories = [
        _remembered(turn, place) for talk in read_conversations(folder) for place, turn in enumerate(talk.turns)
    ]
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


def _remembered(turn: Turn, place: int) -> Memory:
    """The memory that a turn becomes."""
    assert turn.occurred_at is not None
    return next_memory(
        turn, identify_turn(turn, turn.occurred_at), None, (GENERAL, "fallback"), place, asks_model=False
    )


def _is_exact(pair: tuple[Memory, ExtractedItem]) -> bool:
    """Whether the item's text is what stands at its span."""
    memory, item = pair
    texts = {one.uri: one.text or "" for one in memory.resources} | {None: memory.text}
    return texts[item.resource][item.start : item.end] == item.text


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
