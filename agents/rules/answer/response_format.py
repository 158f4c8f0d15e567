"""The requested form of a model's answer: check its JSON Schema, and read the answer by it. Pure.

A schema comes from a caller, and an answer from a model: both may be anything. Guaranteed: nothing is fetched, patterns
take time linear in the text, and schemas and the steps of a check have limits.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

MAX_CHECKS = 100_000
"""Keywords that are applied to parts of one answer; a schema may multiply them without limit."""

MAX_SCHEMA_PARTS, MAX_PATTERNS = 5000, 50
"""Maximum values in a schema: about 0.3 s of checking; and maximum patterns, which may take 40 ms each."""

MAX_PROBLEM_CHARS = 300
"""Maximum characters of a problem: it repeats the value."""

MAPS = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose keys are names, not keywords."""

TEXT_KEYWORDS = frozenset({"$ref", "pattern"})

REFUSED_KEYWORDS = frozenset({"patternProperties", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef"})
"""Keywords that no provider supports, and whose checks could not be bounded."""

CODE_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
"""Markers that models write around requested JSON."""

Keyword = Callable[[Any, Any, Any, Any], Any]


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, for an unusable schema."""
    # Takes 0.1 s, and few requests have a schema.
    from jsonschema import Draft202012Validator, exceptions  # type: ignore[import-untyped]  # noqa: PLC0415
    from referencing import Registry, Resource  # noqa: PLC0415 - comes with it
    from referencing.exceptions import Unresolvable  # noqa: PLC0415
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    # Raise ValueError for a schema with too many parts.
    parts, level = 0, [schema]
    while level:
        parts += len(level)
        if parts > MAX_SCHEMA_PARTS:
            raise ValueError(f"a schema has at most {MAX_SCHEMA_PARTS} values")
        inner = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = list(islice(chain.from_iterable(inner), MAX_SCHEMA_PARTS + 1))
    try:
        Draft202012Validator.check_schema(schema)
        resolver = Registry().resolver_with_root(Resource.from_contents(schema, DRAFT202012))
        keywords = _Keywords(schema)
        for reference in keywords.references:
            contents = resolver.lookup(reference).contents
            if not isinstance(contents, bool) and id(contents) not in keywords.parts:
                # Such as an example: its keywords are not checked.
                raise ValueError(f"the `$ref` {reference[:80]!r} refers to no schema")
    except Unresolvable as problem:
        raise ValueError(f"the `$ref` {problem.ref[:80]!r} refers to nothing in the schema") from None
    except exceptions.SchemaError as problem:
        raise ValueError(f"{problem.json_path}: {problem.message}"[:MAX_PROBLEM_CHARS]) from None
    except RecursionError:
        raise ValueError("the schema is nested too deeply") from None


def read_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the JSON value of an answer that satisfies a schema. Raises ValueError with the problem."""
    from jsonschema.exceptions import UnknownType  # type: ignore[import-untyped]  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    fenced = CODE_FENCE.match(text)
    try:
        value = json.loads(fenced[1] if fenced else text, parse_constant=_refuse_constant, parse_float=_finite)
        if "\\ud" in text.lower():
            # Halves of characters, which a reply can't carry.
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        problem = next(_validator(schema).iter_errors(value), None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except OverflowError:
        raise ValueError("it has a number that is too large") from None
    except (AttributeError, KeyError, TypeError, UnknownType, Unresolvable) as problem:
        # A `$ref` may lead into a keyword that no draft knows, where everything is allowed.
        raise ValueError(f"the schema can't be applied ({type(problem).__name__})") from None
    if problem is not None:
        raise ValueError(f"{problem.json_path}: {problem.message}"[:MAX_PROBLEM_CHARS])
    return value


class _Keywords:
    """Collects the references of a schema. Raises ValueError."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.references: set[str] = set()
        self.parts: set[int] = set()
        """The `id` of each schema within it."""
        self._patterns: set[str] = set()
        self._take(schema)

    def _take(self, node: Any) -> None:
        if isinstance(node, list):
            for part in node:
                self._take(part)
        if not isinstance(node, dict):
            return
        self.parts.add(id(node))
        for keyword, value in node.items():
            if keyword in REFUSED_KEYWORDS:
                raise ValueError(f"the keyword {keyword!r} is not supported")
            if keyword in TEXT_KEYWORDS:
                self._take_text(keyword, value)
            if keyword not in ("const", "default", "enum", "examples"):
                for part in value.values() if keyword in MAPS and isinstance(value, dict) else (value,):
                    self._take(part)

    def _take_text(self, keyword: str, value: Any) -> None:
        if not isinstance(value, str):
            # Within an unknown keyword it was not checked, and a `$ref` may lead there.
            raise ValueError(f"{keyword!r} is not a text")  # noqa: TRY004 - what callers expect
        if keyword == "$ref":
            if not value.startswith("#"):
                raise ValueError("a `$ref` refers to a part of the same schema, such as #/$defs/name")
            self.references.add(value)
            return
        self._patterns.add(value)
        if len(self._patterns) > MAX_PATTERNS:
            raise ValueError(f"a schema has at most {MAX_PATTERNS} patterns")
        _compiled(value)


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
    # An empty registry: the default one fetches references.
    return bounded(schema, registry=Registry())


@lru_cache(4 * MAX_PATTERNS)
def _compiled(pattern: str) -> SchemaValidator:
    """Return a linear-time matcher of a pattern: Python's own can take hours for a short text."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        raise ValueError(f"the pattern {pattern[:80]!r} is not supported: no look-around, no back-references") from None


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("it has a number that is too large")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
