"""A chat completion. The request: its content, and its bytes with memories inserted. The answer: its text. Pure.

Guaranteed: existing bytes do not change. The body is never re-encoded; the two messages with memories are inserted
between its own bytes. An answer is read while it passes, in bounded memory; an unreadable, failed or interrupted one
has no text.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

from gateway.service.calls import Refused
from schemas.messages.assemble import MAX_SHOWN_TEXTS, text_digest
from schemas.messages.turns import pieces_of

Json = dict[str, Any]

INSTRUCTIONS = ("system", "developer")
"""Roles of messages that tell the model how to behave: memories come after those at the start."""

MAX_FIELDS = 1000
"""Maximum fields of a request; OpenAI's have about 40."""

CLOSING = {"{": "}", "[": "]"}

_WHITESPACE = re.compile(r"[ \t\n\r]*")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# A number may have any length here: it is not evaluated.
_decoder = json.JSONDecoder(parse_int=float, parse_constant=_refuse_constant)


class Part(NamedTuple):
    """A value within an array or an object, with its name in an object, and its start and end in the text."""

    name: str
    value: Any
    start: int
    end: int


class Question(NamedTuple):
    """The last user message; the text is empty without one.

    `number` and `answer_number` are its position and that of the answer in the conversation: messages before it,
    without instructions, which may change from call to call.
    """

    text: str = ""
    speaker: str | None = None
    number: int = 0
    answer_number: int = 0

    def turn_id(self, conversation_id: str, role: str, piece: int = 0) -> str:
        """Return the id of its turn, or of the answer's; a text too long for one turn has several pieces.

        The id of an answer is made of its question, so that another answer to the same question replaces it.
        """
        number = self.number if role == "user" else self.answer_number
        return f"openai-{_digest([conversation_id, number, role, self.text, piece])[:40]}"


class Chat:
    """The body of a request for a completion.

    `user` is named by the body. `derived_conversation` is a name derived from the instructions at its start and its
    first user message: a list of messages that grows keeps its name. `shown` are the `text_digest` of the last
    messages.
    """

    def __init__(self, body: bytes) -> None:
        """Read a body; a large one takes a while.

        Raises Refused: `invalid_json` if it is not a JSON object, `too_large` for far too many fields.
        """
        self.body = body
        try:
            self._text = body.decode()
            parts = list(islice(_parts_at(self._text, _end_of_space(self._text, 0), "{"), MAX_FIELDS + 1))
        except (ValueError, RecursionError):
            raise Refused("invalid_json", "the body is not a JSON object") from None
        if len(parts) > MAX_FIELDS:
            raise Refused("too_large", f"a request has at most {MAX_FIELDS} fields")
        fields = {part.name: part.value for part in parts}
        user = fields.get("user")
        self.user = readable(user) if isinstance(user, str) and user else None
        # Readers disagree about which of two lists counts.
        lists = [part for part in parts if part.name == "messages"]
        self._start = lists[0].start if len(lists) == 1 else None
        messages: Sequence[Json] = ()
        if len(lists) == 1 and isinstance(value := lists[0].value, list):
            messages = value if all(isinstance(message, dict) for message in value) else ()
        self._instructions = next(
            (at for at, message in enumerate(messages) if message.get("role") not in INSTRUCTIONS), len(messages)
        )
        self.question = _question_of(messages)
        shown = [piece for message in messages[-MAX_SHOWN_TEXTS:] for piece in pieces_of(text_of(message))]
        self.shown = list(map(text_digest, shown[-MAX_SHOWN_TEXTS:]))
        start = [message.get("content") for message in messages[: self._instructions]]
        first = next((message.get("content") for message in messages if message.get("role") == "user"), None)
        self.derived_conversation = f"openai-{_digest([start, first])[:32]}"

    def with_messages(self, added: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the body with further messages, between the instructions and the conversation's own messages.

        There must be a question.
        """
        assert self._start is not None
        parts = _parts_at(self._text, self._start, "[")
        start = next(part.start for at, part in enumerate(parts) if at == self._instructions)
        pieces = "".join(f"{json.dumps(message)}," for message in added)
        return f"{self._text[:start]}{pieces}{self._text[start:]}".encode()


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message: a string, or its text parts, one a line."""
    content = message.get("content")
    if isinstance(content, str):
        return readable(content)
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(readable(text) for text in texts if isinstance(text, str) and text)


def readable(text: str) -> str:
    """Return an encodable text: JSON may have halves of characters, which become question marks."""
    return text.encode("utf-8", "replace").decode()


def _question_of(messages: Sequence[Json]) -> Question:
    last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=None)
    if last is None:
        return Question()
    name = messages[last].get("name")
    speaker = readable(name) if isinstance(name, str) and name else None
    spoken = [message.get("role") not in INSTRUCTIONS for message in messages]
    return Question(text_of(messages[last]), speaker, sum(spoken[:last]), sum(spoken))


def _digest(named: Any) -> str:
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()


def _parts_at(text: str, start: int, opening: str) -> Iterator[Part]:
    """Yield the parts of an object or array that starts here. Raises ValueError or RecursionError.

    Nothing may follow an object, which is a whole text.
    """
    closing = CLOSING[opening]
    at = _end_of_space(text, _after(text, start, opening))
    is_ended = text[at : at + 1] == closing
    while not is_ended:
        name = ""
        if opening == "{":
            name, at = _decoder.raw_decode(text, at)
            if not isinstance(name, str):
                raise ValueError("a name is a string")
            at = _end_of_space(text, _after(text, _end_of_space(text, at), ":"))
        value, end = _decoder.raw_decode(text, at)
        yield Part(name, value, at, end)
        at = _end_of_space(text, end)
        is_ended = text[at : at + 1] == closing
        if not is_ended:
            at = _end_of_space(text, _after(text, at, ","))
    if opening == "{" and _end_of_space(text, at + 1) != len(text):
        raise ValueError("something follows the object")


def _after(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise ValueError(f"{mark} is missing at {at}")
    return at + 1


def _end_of_space(text: str, at: int) -> int:
    space = _WHITESPACE.match(text, at)
    assert space is not None
    return space.end()


MAX_READ_BYTES = 2 * 1024 * 1024
"""Maximum bytes of an answer kept to read its text: a longer one is not stored. 128,000 tokens have 0.5 MiB."""

MAX_STREAMED_BYTES = 64 * MAX_READ_BYTES
"""Maximum bytes read of a streamed answer: an event has about 200 around each word."""


class AnswerReader(Protocol):
    """Takes the bytes of an answer as they pass."""

    is_whole: bool
    """True once its caller can know that nothing follows."""

    def feed(self, piece: bytes) -> None: ...

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
        self._size += len(piece)
        self.is_whole = self._size == self._length
        if self._size <= MAX_READ_BYTES:
            self._body += piece

    def text(self) -> str | None:
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
        if self._is_broken:
            return
        self._bytes += len(piece)
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            self._take(line)
        self._is_broken = self._is_broken or self._bytes > MAX_STREAMED_BYTES or len(self._line) > MAX_READ_BYTES

    def text(self) -> str | None:
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
