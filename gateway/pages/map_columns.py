"""Maps as columns: an answer of `map.v1` in, compact JSON for the page's script out. Pure.

Guaranteed: one cloud stays one cloud; names of conversations and types stand once and points name them by number.
"""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from gateway.pages.formats import hue
from gateway.service.wire import Json
from schemas.messages.maps import MAX_POINT_TEXT_CHARS

COMPRESSION = 6
"""Of gzip: 20,000 points take 0.1 s and a fifth of their bytes; higher levels take twice the time for 3 % less."""

KEPT_OF_CLOUD = ("mode", "space", "method", "made_at", "settled", "left_out")
"""Fields of a cloud that are no points."""


def encode_map(result: Mapping[str, Any], *, compressed: bool) -> bytes:
    """Return the body of an answer, as gzip if `compressed`."""
    clouds = [_cloud_columns(cloud) for cloud in result["clouds"]]
    body = json.dumps({"clouds": clouds}, ensure_ascii=False, separators=(",", ":")).encode()
    return gzip.compress(body, COMPRESSION, mtime=0) if compressed else body


def _cloud_columns(cloud: Mapping[str, Any]) -> Json:
    """Return a cloud with a list for each field of its points, all in the same order."""
    points: Sequence[Mapping[str, Any]] = cloud["points"]
    return {
        **{name: cloud[name] for name in KEPT_OF_CLOUD},
        "hue": hue(cloud["mode"]),
        "ids": [one["memory_id"] for one in points],
        "x": [one["x"] for one in points],
        "y": [one["y"] for one in points],
        "at": [_seconds(one["occurred_at"]) for one in points],
        "text": [_cut(one["text"]) for one in points],
        "conversation": _numbered(one["conversation_id"] or "" for one in points),
        "type": _numbered(one["type"] for one in points),
    }


def _cut(text: str) -> str:
    return text + " …" if len(text) >= MAX_POINT_TEXT_CHARS else text


def _numbered(values: Iterable[str]) -> Json:
    """Return the different values, and the number of each point's value among them.

    >>> _numbered(["b", "a", "b"])
    {'names': ['b', 'a'], 'of': [0, 1, 0]}
    """
    numbers: dict[str, int] = {}
    of = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"names": list(numbers), "of": of}


def _seconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp())
