"""One page of metrics of several workers: each series with the label `worker`. Pure.

Enters: the pages of workers in Prometheus' text format, by worker. Leaves: one page with every family once.
"""

import re
from collections.abc import Mapping

SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S.*)$")
"""Name, labels and value of a sample."""

WORKER_UP = "modestream_worker_up"


def merge_pages(pages: Mapping[str, str | None]) -> str:
    """Merge the pages by worker; None: the worker does not answer, which `modestream_worker_up` says."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for worker, page in pages.items():
        family = ""
        for line in (page or "").splitlines():
            if line.startswith("#"):
                family = line.split(" ", 3)[2]
                if len(heads.setdefault(family, [])) < 2 and line not in heads[family]:
                    heads[family].append(line)
            elif (sample := SAMPLE.match(line)) is not None:
                samples.setdefault(family, []).append(_labelled(sample, worker))
    families = (line for family, head in heads.items() for line in (*head, *samples.get(family, ())))
    return "\n".join((*families, *_up(pages))) + "\n"


def _labelled(sample: re.Match[str], worker: str) -> str:
    name, labels, value = sample.groups()
    own = f'worker="{worker}"' + (f",{labels}" if labels else "")
    return f"{name}{{{own}}} {value}"


def _up(pages: Mapping[str, str | None]) -> list[str]:
    help_text = f"# HELP {WORKER_UP} 1 while the worker of a supervisor of several answers, else 0."
    values = (f'{WORKER_UP}{{worker="{worker}"}} {int(page is not None)}.0' for worker, page in pages.items())
    return [help_text, f"# TYPE {WORKER_UP} gauge", *values]
