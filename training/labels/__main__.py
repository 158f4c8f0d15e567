"""`python -m training.labels`: measure the sentence labels, write the report. `--wrong`: show wrong ones."""

import argparse
from pathlib import Path

from training.labels.measuring import found_labels
from training.labels.report import format_report
from training.labels.sentences import read_sentences

REPORT = Path(__file__).parents[2] / "docs" / "labels_report.md"


def main() -> None:
    """Write the report, or show the development sentences that are labelled wrongly."""
    parser = argparse.ArgumentParser(prog="python -m training.labels", description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="of the development half; the held-out one is not shown")
    if parser.parse_args().wrong:
        _show_wrong()
        return
    report = format_report()
    REPORT.write_text(report, encoding="utf-8")
    print(report)  # noqa: T201


def _show_wrong() -> None:
    for sentence in read_sentences("development"):
        found = found_labels(sentence.text)
        wrong = sorted(found - sentence.labels - sentence.borderline)
        missed = sorted(sentence.labels - sentence.borderline - found)
        if wrong or missed:
            print(f"wrong {wrong} missed {missed}: {sentence.text}")  # noqa: T201


if __name__ == "__main__":
    main()
