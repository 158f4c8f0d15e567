"""Format the report of the sentence labels as Markdown; equal results give equal bytes."""

from collections.abc import Iterable, Mapping, Sequence

from training.labels.measuring import Quality, measure_labels
from training.labels.sentences import Half, Label, read_sentences

TITLES: Mapping[Half, str] = {"held_out": "Held out", "development": "Development"}

BEFORE: Mapping[Half, Sequence[tuple[Label, str, str]]] = {
    "held_out": (
        ("safety", "0.25 of 4", "0.08"),
        ("constraint", "0.53 of 17", "0.15"),
        ("preference", "0.56 of 25", "0.54"),
        ("decision", "0.67 of 24", "0.19"),
        ("correction", "0.67 of 9", "0.19"),
        ("error", "0.73 of 15", "0.28"),
    )
}
"""Precision of the found ones and recall of the patterns before these sentences were labelled, 23 November 2026."""

ABOUT = """# Sentence labels

Written by `python -m training.labels`. {development} sentences of the development half and {held_out} of the held-out \
half, labelled by reading before any pattern was changed: sentences of the conversations in \
`training/ranking/conversations` and of the examples in `training/interaction` that a broad net of words caught, a \
random share of the others, and sentences written for this purpose (a tenth). The halves share no conversation. \
Patterns were made on the development half. The held-out half is not quite untouched: one reader labelled both halves \
and wrote the patterns; its figures were read several times in between, though never the sentences found wrongly or \
missed; and one remedy ("validate" alone is no safety) came from a sentence that was remembered.

At first measurement decisions were right in 0.931 of 58 and safety in 0.923 of 13, all else in 1.000. Then what was \
found in the rest of the held-out conversations and examples, unlabelled, was read: of 24 decisions 21 were right, 3 \
wrong. Patterns were tightened after that, so the 0.964 of decisions below is the more favourable figure, and new text \
may come out between these.

- **safety**: a rule whose breach does harm: to people, personal data, security. An allergy is one.
- **constraint**: obliges or forbids for good, or sets a limit. What is due once ("it must be there before Saturday"), \
what is guessed ("it must be Tuesday") and what others say is none.
- **preference**: how the speaker wants answers or things in general. A wish of the moment or a liking is none.
- **decision**: settles what will be. A proposal, an open question and an idiom is none.
- **correction**: of what was said before. A mere "no" is none.
- **error**: something fails now. A failure in the past, a supposed, handled or fixed one is none.

*Borderline* sentences, on which two readers would differ, count neither way. *At least* is the lower end of the 95 % \
interval (Wilson) of the precision: a few dozen sentences prove no more."""

LIMITS = """## What is not found

Recall is bought with precision: most missed decisions are said by context alone ("Tuesdays and Fridays, then", \
"Last year plus growth."), most missed constraints are fragments ("No voice-over.") or technical conventions. In \
languages other than English only plain forms are found; in scripts other than Latin only program output. A language \
model, where one is set, finds further ones (`docs/reference.md`)."""


def format_report() -> str:
    """Return the report about both halves."""
    sizes = {half: len(read_sentences(half)) for half in TITLES}
    parts = [ABOUT.format(**sizes)]
    for half, title in TITLES.items():
        sentences = read_sentences(half)
        parts += [f"## {title}", "Labels, which decide what is sticky and what stands in the sections of a context:"]
        parts.append(_quality_table(measure_labels(sentences)))
        if half in BEFORE:
            parts.append("Before, on the same sentences:")
            parts.append(_table(("label", "precision", "recall"), BEFORE[half]))
        parts += ["Items by rule, which also have to say something by themselves:"]
        parts.append(_quality_table(measure_labels(sentences, items=True)))
    return "\n\n".join([*parts, LIMITS]) + "\n"


def _quality_table(qualities: Mapping[Label, Quality]) -> str:
    head = ("label", "sentences", "right", "wrong", "borderline", "precision", "at least", "recall")
    rows = [
        (
            label,
            one.right + one.missed,
            one.right,
            one.wrong,
            one.borderline,
            f"{one.precision:.3f}",
            f"{one.least_precision:.3f}",
            f"{one.recall:.3f}",
        )
        for label, one in qualities.items()
    ]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
