"""Result of reading a file: its text with its places, or the reason of the failure."""

from dataclasses import dataclass
from typing import Literal

ReadFailure = Literal["no_reader", "unreadable", "too_large", "no_model", "unavailable"]
"""Why a file has no text: no reader of its type; broken, or protected; beyond a limit; no profile that hears or sees;
its bytes, or a model that was to read them, can't be had now."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A natural part of a file's text: code points from `start` up to, not including, `end`.

    `page` counts pages, slides and sheets from 1; `start_s` and `end_s` are seconds of sound.
    """

    start: int
    end: int
    page: int | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text. Its segments are in order and do not overlap; each is short enough to be embedded whole."""

    text: str
    reader: str
    segments: tuple[Segment, ...] = ()
    pages: int | None = None
    seconds: float | None = None


class ReadFailed(Exception):
    """A file can't be read; the message is a sentence for people. Only `unavailable` may pass by itself."""

    def __init__(self, code: ReadFailure, message: str) -> None:
        super().__init__(message)
        self.code: ReadFailure = code
