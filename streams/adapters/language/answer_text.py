"""A model's words to a validated answer: prose, code fences and thoughts around the object are passed over.

Enters: text. Leaves: the first object in it that validates. Guaranteed: else `InvalidAnswer`, which says what is wrong.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from schemas.language import AnswerT

REASONING_PATTERN = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
"""What some models write before they answer."""

MAX_OBJECT_STARTS = 64
"""Opening braces that are tried: a text full of them must not cost seconds."""

MAX_ANSWER_CHARS = 400_000
"""Characters that are looked at; an honest answer is bounded by the profile's `max_tokens`."""

MAX_PROBLEMS = 8
"""Problems that are told to the model; the others will follow from them."""


class InvalidAnswer(Exception):
    """No object in the text is a valid answer. The message says why, in words that a model can act upon."""


def read_answer(text: str, answer: type[AnswerT]) -> AnswerT:
    """The first object in the text that validates. A null where the type has none stands for its default."""
    problem = "there is no complete JSON object in the answer"
    for value in _objects(REASONING_PATTERN.sub("", text[:MAX_ANSWER_CHARS])):
        if answer.model_fields.keys().isdisjoint(value):
            problem = f"the object has none of the fields {', '.join(answer.model_fields)}"
            continue
        for reading in (value, _without_nulls(value)):
            try:
                return answer.model_validate(reading)
            except ValidationError as error:
                problem = _told(error)
    raise InvalidAnswer(problem)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    begin = text.find("{")
    for _ in range(MAX_OBJECT_STARTS):
        if begin < 0:
            return
        try:
            value, end = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            if _is_cut_off(error):
                return  # what follows are parts of an object that never ends
            end = begin + 1
        except (ValueError, RecursionError):
            return
        else:
            yield value
        begin = text.find("{", end)


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip()


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value


def _told(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, problem['loc'])) or 'the object'}: {problem['msg']}" for problem in problems]
    return "; ".join(told[:MAX_PROBLEMS])
