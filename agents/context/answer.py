"""Answer a question from memory: which context the model is shown, what it is asked, and what becomes of its answer.

Enters: an `answer.v1`, and the context that was assembled for it. Leaves: the model's answer, and the turns that
question and answer become. Writes nothing. Private memories are in no context here.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from modestream_client.contexts import AnswerResult, AnswerUsage, AssembleResult, ExchangeIds

from agents.ports.models import LanguageModel
from agents.ports.stores import Memories
from agents.rules.answer.response_format import check_schema, read_answer
from agents.rules.prompts.prompting import Template, split_template
from schemas.failures import Rejected
from schemas.messages.assemble import AnswerRequest, text_digest
from schemas.messages.records import Record
from schemas.messages.turns import pieces_of
from schemas.models.language import Chat, ChatAnswer, OnText, Profiles, Unanswerable
from schemas.scopes import ANY_VALUE
from schemas.state.memories import derive_memory_id

ANSWER_STEP, ANSWER_ROLE = "retrieve.answer", "answer"
"""The names by which a deployment selects the language model profile."""

PROFILE_FIELD = "profile"
"""The field of errors that are the language model's."""


class Exchange(NamedTuple):
    """Question and answer of a request as turns. Their ids are derived from its record: the same again is the same."""

    scope: dict[str, str]
    conversation_id: str
    digest: str
    asked_at: datetime

    def turn_id(self, role: str, piece: int = 0) -> str:
        """Return the id of the turn of a role; of an answer too long for one turn there are several."""
        return f"answer-{self.digest}-{role}" + (f"-{piece}" if piece else "")

    def turn(self, role: str, content: str, mode: str | None, piece: int = 0, **more: Any) -> dict[str, Any]:
        """Return a `turn.v1`."""
        return {
            "schema": "turn.v1",
            "turn_id": self.turn_id(role, piece),
            "scope": self.scope,
            "conversation_id": self.conversation_id,
            "role": role,
            "content": content,
            "mode": mode,
            **more,
        }

    def memory_id(self, role: str, piece: int = 0) -> str:
        """Return the id of the memory that a turn becomes."""
        return derive_memory_id(self.scope, self.conversation_id, self.turn_id(role, piece))

    @property
    def stored(self) -> ExchangeIds:
        """The ids of the first turns of both."""
        return ExchangeIds(question=self.turn_id("user"), answer=self.turn_id("assistant"))


class StoredAnswer(NamedTuple):
    """The answer that a request was given when it was delivered before: its text, and its turn's metadata."""

    text: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answers in the memories of one partition."""

    model: LanguageModel
    profiles: Profiles
    template: Template
    memories: Memories

    def check(self, request: AnswerRequest) -> None:
        """Raise Rejected for a request that nothing can answer: `unavailable` without profiles, or `invalid_value`."""
        if self.profiles.profile_for(ANSWER_STEP, ANSWER_ROLE, request.profile) is None:
            if not len(self.profiles):
                message = "this deployment has no language model: set MODESTREAM_LLM_PROFILES"
                raise Rejected("unavailable", message, PROFILE_FIELD)
            names = ", ".join(sorted(name for name, _ in self.profiles.items()))
            raise Rejected("invalid_value", f"there is no such profile; there are: {names}", PROFILE_FIELD)
        if request.response_format is not None:
            try:
                check_schema(request.response_format.json_schema.schema_)
            except ValueError as problem:
                raise Rejected("invalid_value", str(problem), "response_format.json_schema.schema") from None

    @staticmethod
    def exchange(request: AnswerRequest, record: Record) -> Exchange | None:
        """Return what is to be stored, None for nothing; `record` is the request's, as it was sent.

        Raises Rejected, `invalid_value`, for a request that names no single place of its turns.
        """
        if not request.store:
            return None
        if not request.conversation_id:
            message = "question and answer become turns of a conversation: name it, or set `store` to false"
            raise Rejected("invalid_value", message, "conversation_id")
        scope: dict[str, str] = {}
        for name, values in request.scope.fields().items():
            if values is None or len(values) != 1:
                message = "question and answer are stored in one place: name one value, or set `store` to false"
                raise Rejected("invalid_value", message, f"scope.{name}")
            scope[name] = values[0]
        asked_at = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
        return Exchange(scope, request.conversation_id, digest_of(record), asked_at)

    def before(self, exchange: Exchange) -> StoredAnswer | None:
        """Return the stored answer; None if it is missing or incomplete."""
        first = self.memories.get(exchange.memory_id("assistant"))
        if first is None:
            return None
        texts = [first.text]
        for piece in range(1, first.metadata.get("pieces", 1)):
            memory = self.memories.get(exchange.memory_id("assistant", piece))
            if memory is None:
                return None
            texts.append(memory.text)
        return StoredAnswer("".join(texts), first.metadata)

    def context_request(self, request: AnswerRequest, answer: StoredAnswer | None) -> AnswerRequest:
        """Return the request of the context that the model is shown, or of an answer's that is stored already."""
        system, before_memories = split_template(self.template.text)
        # The question is no memory of its own context, nor is the answer.
        shown = [request.query, *([] if answer is None else pieces_of(answer.text))]
        return request.model_copy(
            update={
                "append_query": True,
                "for_model": True,
                "already_shown": [text_digest(text) for text in shown],
                "system_prompt": request.system_prompt or system,
                "prefix": request.prefix or before_memories or None,
            }
        )

    async def ask(self, request: AnswerRequest, context: AssembleResult, on_text: OnText | None) -> AnswerResult:
        """Return the model's answer, not stored. Raises `Unavailable` or `Unanswerable`."""
        form = request.response_format
        schema = None if form is None else form.json_schema.model_dump(by_alias=True)
        chat = Chat(
            messages=[message.model_dump() for message in context.messages],
            schema=schema,
            stop=request.stop or (),
            max_tokens=request.max_tokens,
            temperature=request.temperature,
        )
        answered = await self.model.continue_chat(ANSWER_STEP, ANSWER_ROLE, chat, request.profile, on_text)
        parsed = None
        if schema is not None:
            try:
                parsed = await asyncio.to_thread(read_answer, answered.text, schema["schema"])
            except ValueError as problem:
                cut = " (it was cut off: raise `max_tokens`)" if answered.finish_reason == "length" else ""
                raise Unanswerable(f"the model's answer breaks the response_format: {problem}{cut}") from None
        return _result(answered, parsed, context)

    @staticmethod
    def again(
        request: AnswerRequest, stored: StoredAnswer, context: AssembleResult, exchange: Exchange
    ) -> AnswerResult:
        """Return the answer that was stored before."""
        made = stored.metadata
        answered = ChatAnswer(
            text=stored.text, profile=made.get("profile", ""), finish_reason=made.get("finish_reason", "stop")
        )
        parsed = None
        if request.response_format is not None:
            # Its turn may have been edited since.
            with suppress(ValueError):
                parsed = read_answer(stored.text, request.response_format.json_schema.schema_)
        context.context_id = made.get("context_id", context.context_id)
        result = _result(answered, parsed, context)
        usage = AnswerUsage.model_validate(made["usage"]) if "usage" in made else result.usage
        references = list(made.get("references", ()))
        return result.model_copy(update={"references": references, "usage": usage, "stored": exchange.stored})


def question_turn(request: AnswerRequest, exchange: Exchange) -> dict[str, Any]:
    """Return the turn of a question, of the time of its record."""
    return exchange.turn("user", request.query, _mode_of(request), occurred_at=exchange.asked_at.isoformat())


def answer_turns(
    request: AnswerRequest, exchange: Exchange, result: AnswerResult, now: datetime
) -> Iterator[dict[str, Any]]:
    """Yield the turns of an answer, after the question; the first has the account of it."""
    at = max(now, exchange.asked_at + timedelta(milliseconds=1)).isoformat()
    pieces = pieces_of(result.text)
    for number, piece in enumerate(pieces):
        metadata: dict[str, Any] = {"references": result.references}
        if number == 0:
            metadata |= result.model_dump(include={"context_id", "profile", "usage", "finish_reason"})
            metadata |= {"pieces": len(pieces)} if len(pieces) > 1 else {}
        yield exchange.turn("assistant", piece, _mode_of(request), number, occurred_at=at, metadata=metadata)


def digest_of(record: Record) -> str:
    """Return the identity of a request: its key, value, headers and timestamp, without its position."""
    digest = hashlib.sha256(str(record.timestamp_ms).encode())
    named: Sequence[bytes | None] = [part for name, value in record.headers for part in (name.encode(), value)]
    for part in (record.key, record.value, *named):
        # The length parts them.
        digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return digest.hexdigest()[:40]


def _mode_of(request: AnswerRequest) -> str | None:
    return request.mode if isinstance(request.mode, str) and request.mode != ANY_VALUE else None


def _result(answered: ChatAnswer, parsed: Any, context: AssembleResult) -> AnswerResult:
    return AnswerResult(
        text=answered.text,
        parsed=parsed,
        references=context.references,
        context_id=context.context_id,
        context=context.model_dump(exclude={"messages"}),
        profile=answered.profile,
        usage=AnswerUsage(prompt_tokens=answered.tokens_in, completion_tokens=answered.tokens_out),
        finish_reason=answered.finish_reason,
    )
