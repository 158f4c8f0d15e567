"""Structured output: a prompt as a LiteLLM request for a JSON object, its one repair request, and the answer in a text.

The prompt's user text is in the last user message, also in a repair. The answer is the first object in the text that
validates, whatever prose, code fences and reasoning are around it; without one `InvalidAnswer`, with the reason.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from schemas.models.language import AnswerT, Chat, Prompt, StructuredOutput

SUPPORTED_KEYWORDS = frozenset(
    {"type", "enum", "anyOf", "items", "properties", "required", "description", "$defs", "$ref"}
)
"""Keywords that every provider of structured output supports."""

LIMIT_DESCRIPTIONS = {
    "minLength": "at least {} characters", "maxLength": "at most {} characters",
    "minItems": "at least {} entries", "maxItems": "at most {} entries",
    "minimum": "not below {}", "maximum": "not above {}",
    "exclusiveMinimum": "above {}", "exclusiveMaximum": "below {}", "pattern": "matches {}", "format": "a {}",
}  # fmt: skip
"""The words for limits that strict mode rejects as keywords."""


@cache
def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """Return the schema. Raises ValueError for a model with free keys, which strict mode can't express."""
    schema = _strict(answer.model_json_schema())
    assert isinstance(schema, dict)
    return schema


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    strict: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword not in SUPPORTED_KEYWORDS:
            continue
        if keyword in {"properties", "$defs"}:
            # Their keys are names, not keywords.
            strict[keyword] = {name: _strict(part) for name, part in value.items()}
        else:
            strict[keyword] = value if keyword in {"enum", "required", "type", "description"} else _strict(value)
    limits = [words.format(schema[keyword]) for keyword, words in LIMIT_DESCRIPTIONS.items() if keyword in schema]
    texts = schema.get("description", ""), "; ".join(limits).capitalize()
    if description := " ".join(filter(None, texts)):
        strict["description"] = description
    return strict | _closed(schema)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        return {}
    if "properties" not in schema:
        raise ValueError("an answer type with free keys has no strict JSON schema: name its fields")
    return {"required": list(schema["properties"]), "additionalProperties": False}


MAX_REPEATED_CHARS = 4_000
"""Characters of an invalid answer to show to the model in a repair."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A prompt, the type of its answer, and how to request structured output."""

    prompt: Prompt
    answer: type[BaseModel]
    structured_output: StructuredOutput

    def arguments(self) -> dict[str, Any]:
        return self._arguments(self.prompt.user)

    def repair(self, invalid: str, problem: str) -> dict[str, Any]:
        """Return the arguments of a request that shows the model its invalid answer and the problem."""
        shown = json.dumps(invalid[:MAX_REPEATED_CHARS], ensure_ascii=False)
        note = (
            "Your previous answer to the text below was not valid. As a JSON string it was:\n"
            f"{shown}\nWhat is wrong: {problem}\n"
            "Answer again: one complete, valid JSON object and nothing else, shorter if it was cut off.\n\n"
        )
        return self._arguments(note + self.prompt.user)

    def _arguments(self, user: str) -> dict[str, Any]:
        schema, system = strict_schema(self.answer), self.prompt.system
        response_format: dict[str, Any] = {}
        if self.structured_output == "json_schema":
            named = {"name": self.answer.__name__.lower(), "strict": True, "schema": schema}
            response_format = {"response_format": {"type": "json_schema", "json_schema": named}}
        else:
            system = _with_schema(system, schema)
            if self.structured_output == "json_object":
                response_format = {"response_format": {"type": "json_object"}}
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return {"messages": messages} | response_format


def _with_schema(system: str, schema: Any) -> str:
    """Return a system text that asks for a schema: of a provider that knows nothing of it the model reads it."""
    request = "Answer with one JSON object of this JSON schema and nothing else, no explanation, no code fence:"
    return f"{system}\n\n{request}\n{json.dumps(schema, ensure_ascii=False)}"


def chat_arguments(chat: Chat, structured_output: StructuredOutput) -> dict[str, Any]:
    """Return the arguments of a request that continues a conversation, which begins with a system message."""
    messages = [dict(message) for message in chat.messages]
    given = {"max_tokens": chat.max_tokens, "temperature": chat.temperature, "stop": list(chat.stop) or None}
    arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if chat.schema is not None and structured_output == "json_schema":
        arguments["response_format"] = {"type": "json_schema", "json_schema": dict(chat.schema)}
    elif chat.schema is not None:
        messages[0]["content"] = _with_schema(messages[0]["content"], chat.schema["schema"])
        if structured_output == "json_object":
            arguments["response_format"] = {"type": "json_object"}
    return {"messages": messages} | arguments


REASONING_PATTERN = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
"""The reasoning that some models write before the answer."""

MAX_OBJECT_STARTS = 64
"""Opening braces to try: bounds the time for a text full of them."""

MAX_ANSWER_CHARS = 400_000
"""Characters to parse; a proper answer is bounded by the profile's `max_tokens`."""

MAX_PROBLEMS = 8
"""Problems to report to the model; the others mostly follow from them."""


class InvalidAnswer(Exception):
    """No object in the text is a valid answer. The message is the reason, in words that a model can act on."""


def read_answer(text: str, answer: type[AnswerT]) -> AnswerT:
    """Return the first object in the text that validates. A null in a field that allows none means its default."""
    problem = "there is no complete JSON object in the answer"
    for value in _objects(REASONING_PATTERN.sub("", text[:MAX_ANSWER_CHARS])):
        if answer.model_fields.keys().isdisjoint(value):
            problem = f"the object has none of the fields {', '.join(answer.model_fields)}"
            continue
        for candidate in (value, _without_nulls(value)):
            try:
                return answer.model_validate(candidate)
            except ValidationError as error:
                problems = error.errors(include_url=False, include_context=False, include_input=False)
                places = ((".".join(map(str, each["loc"])) or "the object", each["msg"]) for each in problems)
                problem = "; ".join([f"{place}: {message}" for place, message in places][:MAX_PROBLEMS])
    raise InvalidAnswer(problem)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(MAX_OBJECT_STARTS):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip():
                return  # It is cut off: the rest are parts of the truncated object.
            end = start + 1
        except (ValueError, RecursionError):
            return
        else:
            yield value
        start = text.find("{", end)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value
