"""Parses a model's text to a validated answer, skipping prose, code fences and reasoning around the object.

Enters: text. Leaves: the first object in it that validates; without one `InvalidAnswer`, with the reason.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from schemas.models.language import AnswerT

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
                problem = _describe(error)
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
            if _is_cut_off(error):
                return  # the rest are parts of the truncated object
            end = start + 1
        except (ValueError, RecursionError):
            return
        else:
            yield value
        start = text.find("{", end)


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip()


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value


def _describe(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    described = [f"{'.'.join(map(str, problem['loc'])) or 'the object'}: {problem['msg']}" for problem in problems]
    return "; ".join(described[:MAX_PROBLEMS])
