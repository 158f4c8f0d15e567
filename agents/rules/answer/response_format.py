"""The form that a request wants for a model's answer: check its JSON Schema, read the answer by it. Pure.

A schema comes from a caller, and an answer from a model: both may be anything. Guaranteed: nothing is fetched, patterns
take time linear in the text, and a check of one answer has at most `MAX_CHECKS` steps.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

MAX_CHECKS = 100_000
"""Keywords that are applied to parts of one answer; a schema may multiply them without limit."""

MAX_PROBLEM_CHARS = 300
"""Characters of a problem: it repeats the value."""

MAPS = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose keys are names, not keywords."""

REFUSED_KEYWORDS = frozenset({"patternProperties", "$dynamicRef"})
"""Keywords that no provider knows, and whose checks could not be bounded."""

CODE_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
"""What models write around JSON that they were asked for in words."""

Keyword = Callable[[Any, Any, Any, Any], Any]


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, for a schema by which no answer can be checked."""
    # Takes 0.1 s, and few requests have a schema.
    from jsonschema import Draft202012Validator, exceptions  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
        _check_keywords(schema)
    except exceptions.SchemaError as problem:
        raise ValueError(f"{problem.json_path}: {problem.message}"[:MAX_PROBLEM_CHARS]) from None
    except RecursionError:
        raise ValueError("the schema is nested too deeply") from None


def read_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the JSON value of an answer that satisfies a schema. Raises ValueError with what is wrong."""
    fenced = CODE_FENCE.match(text)
    try:
        value = json.loads(fenced[1] if fenced else text, parse_constant=_refuse_constant)
        problem = next(_validator(schema).iter_errors(value), None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if problem is not None:
        raise ValueError(f"{problem.json_path}: {problem.message}"[:MAX_PROBLEM_CHARS])
    return value


def _check_keywords(node: Any) -> None:
    if isinstance(node, list):
        for part in node:
            _check_keywords(part)
    if not isinstance(node, dict):
        return
    for keyword, value in node.items():
        if keyword in REFUSED_KEYWORDS:
            raise ValueError(f"the keyword {keyword!r} is not supported")
        if keyword == "$ref" and not value.startswith("#"):
            raise ValueError("a `$ref` refers to a part of the same schema, such as #/$defs/name")
        if keyword == "pattern":
            _compiled(value)
        if keyword not in ("const", "default", "enum", "examples"):
            for part in value.values() if keyword in MAPS else (value,):
                _check_keywords(part)


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator, exceptions, validators  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415 - comes with it

    left = MAX_CHECKS

    def counted(check: Keyword) -> Keyword:
        def run(validator: Any, value: Any, instance: Any, parent: Any) -> Iterator[Any]:
            nonlocal left
            left -= 1
            if left < 0:
                raise ValueError("the schema takes too long to be checked")
            yield from check(validator, value, instance, parent) or ()

        return run

    def pattern(_validator: Any, value: str, instance: Any, _parent: Any) -> Iterator[Any]:
        try:
            if isinstance(instance, str):
                _compiled(value).validate_python(instance)
        except ValidationError:
            yield exceptions.ValidationError(f"it does not match {value!r}")

    keywords = {**Draft202012Validator.VALIDATORS, "pattern": pattern}
    bounded = validators.extend(Draft202012Validator, {name: counted(check) for name, check in keywords.items()})
    # An empty registry: the usual one fetches what a schema refers to.
    return bounded(schema, registry=Registry())


def _compiled(pattern: str) -> SchemaValidator:
    """Return what checks a text by a pattern, in linear time: Python's own can take hours for a short text."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        raise ValueError(f"the pattern {pattern[:80]!r} is not supported: no look-around, no back-references") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
