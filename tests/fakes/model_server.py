"""An HTTP server for OpenAI chat completions with configurable behaviour and faults.

Enters: behaviours, by `become` for all and by `next` for the next questions. Leaves: answers over HTTP, and the
questions. An answer is the smallest instance of the question's JSON schema, with the mode in its last `[[name]]`.
"""

import asyncio
import gzip
import json
import re
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, Self

from aiohttp import web

MARK = re.compile(r"\[\[([a-z0-9_-]+)\]\]")
BOMB_BYTES = 16 * 1024 * 1024
GARBAGE = 'Sure! {"mode": [[['

Behaviour = Literal[
    "ok", "wait", "hang", "slow", "endless", "bomb", "close", "garbage", "page", "cut", "empty", "refuse",
    "break",
] | int  # fmt: skip
"""`wait` answers when it becomes something else, `hang` never, `slow` trickles, `endless` never stops sending, `bomb`
unpacks to a thousand times its length, `break` ends a streamed answer without its end, `page` is a proxy's HTML,
`cut` is an answer that came to its limit; a number is a status."""


@dataclass(frozen=True, slots=True)
class Question:
    body: dict[str, Any]
    authorization: str

    @property
    def messages(self) -> list[str]:
        return [message["content"] for message in self.body["messages"]]

    @property
    def answer_schema(self) -> dict[str, Any] | None:
        """The JSON schema in `response_format`."""
        schema = (self.body.get("response_format") or {}).get("json_schema", {}).get("schema")
        return schema if isinstance(schema, dict) else None


class ModelServer:
    """Use as an asynchronous context; `url` is its `api_base`. `questions` are in order of arrival.

    `texts` are given, one a question, in place of made answers while there are any."""

    def __init__(self, behaviour: Behaviour = "ok") -> None:
        """Answer like this until told otherwise."""
        self.questions: list[Question] = []
        self.texts: deque[str] = deque()
        self.sounds: list[tuple[str, bytes, str]] = []
        """Names of sounds to transcribe, their bytes, and the format that was asked for."""
        self.headers: dict[str, str] = {}
        self.error = "as told"
        self.sent_bytes = 0
        """Bytes of endless answers that were sent."""
        self.url = ""
        self._arrived = asyncio.Event()
        self._next: deque[Behaviour] = deque()
        self._behaviour: Behaviour = behaviour
        self._released = asyncio.Event()

    def become(self, behaviour: Behaviour) -> None:
        """Set the behaviour and drop hanging requests."""
        self._behaviour = behaviour
        self._released.set()
        self._released = asyncio.Event()

    def next(self, *behaviours: Behaviour) -> None:
        """Set the behaviours of the next questions."""
        self._next.extend(behaviours)

    async def until_asked(self, questions: int) -> None:
        """Wait until this many questions have arrived in total."""
        while len(self.questions) < questions:
            self._arrived.clear()
            await self._arrived.wait()

    async def __aenter__(self) -> Self:
        """Listen on a free port of the loopback interface."""
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._complete)
        application.router.add_post("/v1/audio/transcriptions", self._transcribe)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Drop what hangs and stop listening."""
        self.become("close")
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        question = Question(await request.json(), request.headers.get("Authorization", ""))
        self.questions.append(question)
        self._arrived.set()
        return await self._behave(self._next.popleft() if self._next else self._behaviour, question, request)

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        sound = form["file"]
        assert isinstance(sound, web.FileField)
        self.sounds.append((sound.filename, sound.file.read(), str(form["response_format"])))
        if isinstance(self._behaviour, int):
            return web.json_response({"error": {"message": self.error}}, status=self._behaviour)
        if self._behaviour == "garbage":
            return web.json_response({"error": {"message": "no sound"}}, status=413)
        words = (self.texts.popleft() if self.texts else "Under the pot.").split()
        heard = [{"id": at, "text": word, "start": float(at), "end": at + 1.0} for at, word in enumerate(words)]
        return web.json_response({"text": " ".join(words), "duration": float(len(words)), "segments": heard})

    async def _behave(self, behaviour: Behaviour, question: Question, request: web.Request) -> web.StreamResponse:
        if isinstance(behaviour, int):
            error = {"message": self.error, "type": "fake", "code": str(behaviour)}
            return web.json_response({"error": error}, status=behaviour, headers=self.headers)
        match behaviour:
            case "wait":
                await self._released.wait()
            case "hang":
                await self._released.wait()
                return dropped(request)
            case "slow":
                return await self._trickle(request)
            case "endless":
                return await self._send_without_end(request)
            case "bomb":
                packed = gzip.compress(b" " * BOMB_BYTES)
                return web.Response(
                    body=packed, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
                )
            case "close":
                return dropped(request)
            case "page":
                return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
        text, finish_reason = self._said(behaviour, question)
        if question.body.get("stream"):
            return await self._stream(question, text or "", None if behaviour == "break" else finish_reason, request)
        return web.json_response(completion(question, text, finish_reason))

    async def _stream(
        self, question: Question, text: str, finish_reason: str | None, request: web.Request
    ) -> web.StreamResponse:
        """Answer by a word at a time."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        whole = completion(question, text, "stop")
        chunk = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        choices: list[Any] = [{"index": 0, "delta": {"content": word}} for word in re.findall(r"\S+\s*", text)]
        if finish_reason is not None:
            choices.append({"index": 0, "delta": {}, "finish_reason": finish_reason})
        for choice in choices:
            await response.write(f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n".encode())
        if finish_reason is not None:
            usage = {**chunk, "choices": [], "usage": whole["usage"]}
            await response.write(f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode())
        await response.write_eof()
        return response

    def _said(self, behaviour: Behaviour, question: Question) -> tuple[str | None, str]:
        match behaviour:
            case "garbage":
                return GARBAGE, "stop"
            case "cut":
                return '{"mode": "gener', "length"
            case "empty":
                return None, "stop"
            case "refuse":
                return None, "content_filter"
        if self.texts:
            return self.texts.popleft(), "stop"
        return json.dumps(smallest_answer(question)), "stop"

    async def _trickle(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        released = self._released
        while not released.is_set():
            try:
                await response.write(b" ")
            except ConnectionError:
                break
            await asyncio.sleep(0.02)
        return dropped(request)

    async def _send_without_end(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        piece = b" " * 65_536
        try:
            while True:
                await response.write(piece)
                self.sent_bytes += len(piece)
        except ConnectionError:
            return dropped(request)


def dropped(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def completion(question: Question, content: str | None, finish_reason: str) -> dict[str, Any]:
    """Return a chat completion with one choice, 11 prompt tokens and 7 completion tokens."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": question.body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def smallest_answer(question: Question) -> Any:
    """Return the smallest instance of the question's schema, with the mode marked in its last message."""
    marks = MARK.findall(question.messages[-1])
    mode = marks[-1] if marks else None
    schema = question.answer_schema
    return {"mode": mode} if schema is None else smallest(schema, schema, mode)


def smallest(schema: dict[str, Any], root: dict[str, Any], mode: str | None, name: str = "") -> Any:
    """Return the smallest value of a strict schema. Raises KeyError for other schemas."""
    if "$ref" in schema:
        return smallest(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, mode, name)
    if name == "mode":
        return mode
    if "anyOf" in schema:
        nullable = any(option.get("type") == "null" for option in schema["anyOf"])
        return None if nullable else smallest(schema["anyOf"][0], root, mode, name)
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {key: smallest(schema["properties"][key], root, mode, key) for key in schema["required"]}
    return {"array": [], "string": "", "boolean": False, "integer": 0, "number": 0.0, "null": None}[schema["type"]]
