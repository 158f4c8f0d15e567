"""Read an answer of the provider while it passes: the text of its first choice, once complete. Pure.

Guaranteed: an unreadable, failed or interrupted answer has no text; memory is bounded, whatever the provider sends.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from gateway.openai.chat import readable, text_of

MAX_READ_BYTES = 2 * 1024 * 1024
"""Maximum bytes of an answer kept to read its text: a longer one is not stored. 128,000 tokens have 0.5 MiB."""

MAX_STREAMED_BYTES = 64 * MAX_READ_BYTES
"""Maximum bytes read of a streamed answer: an event has about 200 around each word."""


class AnswerReader(Protocol):
    """Takes the bytes of an answer as they pass."""

    is_whole: bool
    """True once its caller can know that nothing follows."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        ...

    def text(self) -> str | None:
        """Return the text of the first choice after the last bytes; None if it is missing or incomplete."""
        ...


class WholeAnswer:
    """One JSON object, with its announced length, if any."""

    def __init__(self, length: str | None = None) -> None:
        self.is_whole = False
        self._length = int(length) if length is not None and length.isdecimal() else None
        self._size = 0
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self._size += len(piece)
        self.is_whole = self._size == self._length
        if self._size <= MAX_READ_BYTES:
            self._body += piece

    def text(self) -> str | None:
        """Return the text of the first choice."""
        if self._size > MAX_READ_BYTES or (answer := _object(self._body)) is None or answer.get("error"):
            return None
        for choice in _first_choices(answer):
            message = choice.get("message")
            if isinstance(message, dict) and choice.get("finish_reason"):
                return text_of(message) or None
        return None


class StreamedAnswer:
    """Server-sent events, each with a piece of the text."""

    def __init__(self) -> None:
        self.is_whole = False
        self._line = b""
        self._texts: list[str] = []
        self._bytes = 0
        self._is_finished = False
        self._is_broken = False

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        if self._is_broken:
            return
        self._bytes += len(piece)
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            self._take(line)
        self._is_broken = self._is_broken or self._bytes > MAX_STREAMED_BYTES or len(self._line) > MAX_READ_BYTES

    def text(self) -> str | None:
        """Return the text of the first choice."""
        if self._is_broken or not self._is_finished:
            return None
        return readable("".join(self._texts)) or None

    def _take(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        if (data := line[5:].strip()) == b"[DONE]":
            self.is_whole = True
            return
        if (event := _object(data)) is None or event.get("error"):
            self._is_broken = True
            return
        for choice in _first_choices(event):
            if isinstance(delta := choice.get("delta"), dict):
                self._texts.append(text_of(delta))
            self._is_finished = self._is_finished or bool(choice.get("finish_reason"))


def _first_choices(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            yield choice


def _object(data: bytes | bytearray) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
