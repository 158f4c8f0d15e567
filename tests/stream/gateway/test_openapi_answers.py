"""Requests made up from the OpenAPI document: every answer is one that the document names, and none is a 5xx.

`python -m schemathesis.cli run
URL/openapi.json` makes more of them, in all its phases and along the links, against a real `up`.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from streams.flow.steps import answer
from tests.properties import scaled
from tests.worlds.guarded_gateway import GuardedGateway, gateway_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline

EXAMPLES = 3
"""Requests of each operation and kind: some seconds in all."""

MANY = "add_turns"
"""The operation whose answer has the refusal of one invalid turn among valid ones."""

STREAMS = ("listen_to_events", "answer")
"""Operations whose answers do not end, or are those of a language model."""

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

REFUSALS = ["400", "401", "403", "404", "405", "409", "413", "422"]
"""Statuses of what the document does not admit."""

Ask = Callable[[Any], httpx.Response]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """Send a case to a keyless gateway that runs in a thread of its own."""
    # The worker's clock stands still here: without this it would wait as long as a case lets the gateway wait.
    monkeypatch.setattr(answer, "MAX_READ_AFTER_WAIT_S", 0.5)
    loop = asyncio.new_event_loop()
    started: list[GuardedGateway] = []
    is_up, ending = threading.Event(), asyncio.Event()

    async def run() -> None:
        async with InMemoryPipeline(tmp_path).running() as pipeline, gateway_of(pipeline) as gateway:
            started.append(gateway)
            is_up.set()
            await ending.wait()

    def send(case: Any) -> httpx.Response:
        how = {name: value for name, value in case.as_transport_kwargs().items() if value is not None}
        how.pop("cookies", None)
        if isinstance(how.get("data"), bytes | str):
            how["content"] = how.pop("data")
        if isinstance(how.get("files"), list):
            how["files"] = [(name, _as_text(part)) for name, part in how["files"]]
        request = started[0].http.build_request(how.pop("method"), how.pop("url"), **how)
        # The parts of a form, which the checks look at, would be a stream that is gone.
        request.read()
        return asyncio.run_coroutine_threadsafe(started[0].http.send(request), loop).result(60)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert is_up.wait(60)
    yield send
    loop.call_soon_threadsafe(ending.set)
    thread.join(60)
    loop.close()


def _as_text(part: Any) -> Any:
    """Return a part of a form as a client can send it: a number, which is wrong for a file, as text."""
    if isinstance(part, tuple):
        return (part[0], _as_text(part[1]), *part[2:])
    return part if isinstance(part, str | bytes) else str(part)


def _schema(tmp_path: Path) -> Any:
    """Return the document with its links; what is invalid is refused, but for one of several turns."""
    load_all_checks()
    schema: Any = schemathesis.openapi.from_dict(asyncio.run(_document(tmp_path / "document")))
    schema.config.base_url = "http://localhost"
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
    return schema


async def _document(tmp_path: Path) -> Any:
    pipeline = InMemoryPipeline(tmp_path)
    async with gateway_of(pipeline) as gateway:
        return (await gateway.http.get("/openapi.json")).json()


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["valid", "invalid"])
def test_every_answer_is_one_that_the_document_names(ask: Ask, tmp_path: Path, kind: str) -> None:
    schema = _schema(tmp_path)
    mode = schemathesis.GenerationMode.POSITIVE if kind == "valid" else schemathesis.GenerationMode.NEGATIVE
    operations = [operation.ok() for operation in schema.get_all_operations()]
    walked = [operation for operation in operations if operation.definition.raw["operationId"] not in STREAMS]
    wrong = []
    for operation in walked:
        wrong += _failures(operation, mode, ask)
    assert not wrong, "\n\n".join(wrong)


def _failures(operation: Any, mode: Any, ask: Ask) -> list[str]:
    @settings(max_examples=scaled(EXAMPLES), suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        answer = ask(case)
        may_be_accepted = operation.definition.raw["operationId"] == MANY
        case.validate_response(answer, checks=CHECKS if may_be_accepted else [*CHECKS, negative_data_rejection])

    try:
        check()
    except FailureGroup as group:
        return [f"{operation.label}: {failure}" for failure in group.exceptions]
    except (Unsatisfiable, httpx.InvalidURL):
        # There is nothing to get wrong, or no request can carry it.
        return []
    return []
