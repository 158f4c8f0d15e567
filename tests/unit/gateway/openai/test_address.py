"""OpenAI's address over HTTP: what the provider is sent, what comes back, what is remembered, and what it costs."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from modestream_client import MemoryUnreachable
from modestream_client.answers import Reply
from modestream_client.records import Written
from starlette.datastructures import Headers

from gateway.http.limits import Limits
from gateway.openai import memory as outbox_module
from gateway.service.calls import Caller, Refused
from gateway.service.service import MemoryService
from tests.fakes.provider import DONE, EVENTS, LAST, completion, event
from tests.fakes.wire import FakeWire
from tests.worlds.openai_address import COMPLETIONS, KEY, OpenAiAddress, openai_address

Json = dict[str, Any]

MEMORIES = [{"role": "user", "content": "Memories: the key is under the pot."}, {"role": "assistant", "content": "Ok"}]
CONTEXT = {"messages": [{"role": "system", "content": "s"}, *MEMORIES], "references": ["m1"], "context_id": "c-1"}
NOTHING = {**CONTEXT, "references": []}
RAW = b'{ "seed":1.50, "user" : "u1","messages":[ {"content":"Tea\\u0021","role":"user"} ] }'


@pytest.fixture(autouse=True)
def context(wire: FakeWire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.results["assemble.v1"] = CONTEXT
    monkeypatch.setattr(outbox_module, "RETRY_S", 0.01)


async def turns(wire: FakeWire, count: int) -> list[Json]:
    async with asyncio.timeout(5):
        while len(written := [record for record in wire.records if record["schema"] == "turn.v1"]) < count:
            await asyncio.sleep(0.005)
    return written


def spoken(written: list[Json]) -> list[tuple[str, str]]:
    return [(record["role"], record["content"]) for record in written]


def asked_of(wire: FakeWire) -> Json:
    return next(record for record in wire.records if record["schema"] == "assemble.v1")


async def test_memories_stand_before_the_conversation(address: OpenAiAddress) -> None:
    answer = await address.ask()
    sent = json.loads(address.provider.asked[0].body)
    assert sent == {"model": "m", "messages": [*MEMORIES, {"role": "user", "content": "Tea or coffee?"}]}
    named = {name: answer.headers.get(f"x-modestream-{name}") for name in ("memory", "context")}
    assert named == {"memory": "used", "context": "c-1"}


async def test_without_memories_the_body_passes_byte_by_byte(address: OpenAiAddress, wire: FakeWire) -> None:
    wire.results["assemble.v1"] = NOTHING
    answer = await address.post(RAW)
    assert answer.headers["x-modestream-memory"] == "used"
    assert address.provider.asked[0].body == RAW


@pytest.mark.parametrize(
    "named",
    [{"budget": "5"}, {"budget": "x"}, {"budget": "-1"}, {"wait": "nan"}, {"wait": "0"}, {"wait": "soon"},
     {"store": "perhaps"}, {"project": "*"}, {"project": "x" * 300}, {"conversation": "x" * 600}],
    ids=str,
)  # fmt: skip
async def test_a_header_that_makes_no_sense_costs_memories_alone(
    address: OpenAiAddress, wire: FakeWire, named: Json
) -> None:
    answer = await address.post(RAW, **named)
    assert answer.status_code == 200
    assert answer.headers["x-modestream-memory"] == "unavailable"
    assert address.provider.asked[0].body == RAW
    assert "assemble.v1" not in [record["schema"] for record in wire.records]


async def test_the_request_for_memories_says_what_the_headers_say(address: OpenAiAddress, wire: FakeWire) -> None:
    await address.ask(project="p1", mode="code", conversation="c1", budget="500")
    fields = ("scope", "query", "conversation_id", "mode", "budget_tokens", "for_model")
    assert {name: asked_of(wire)[name] for name in fields} == {
        "scope": {"user_id": "u1", "project_id": "p1"},
        "query": "Tea or coffee?",
        "conversation_id": "c1",
        "mode": "code",
        "budget_tokens": 500,
        "for_model": True,
    }


async def test_a_name_may_have_letters_of_any_script(address: OpenAiAddress, wire: FakeWire) -> None:
    headers = {b"x-modestream-user": "Zoë".encode(), b"x-modestream-conversation": "東京".encode()}
    await address.http.post(COMPLETIONS, content=RAW, headers=headers)
    asked = asked_of(wire)
    assert asked["scope"]["user_id"] == "Zoë"
    assert asked["conversation_id"] == "東京"


async def test_question_and_answer_become_turns(address: OpenAiAddress, wire: FakeWire) -> None:
    await address.ask(project="p1", mode="code", conversation="c1")
    written = await turns(wire, 2)
    assert spoken(written) == [("user", "Tea or coffee?"), ("assistant", "Tea.")]
    about = {(record["scope"]["project_id"], record["mode"], record["conversation_id"]) for record in written}
    assert about == {("p1", "code", "c1")}


async def test_a_retry_stores_nothing_twice(address: OpenAiAddress, wire: FakeWire) -> None:
    for _ in range(2):
        await address.ask()
    assert len({record["turn_id"] for record in await turns(wire, 4)}) == 2


async def test_a_conversation_that_grows_is_stored_once(address: OpenAiAddress, wire: FakeWire) -> None:
    own = [{"role": "user", "content": "Tea or coffee?"}]
    await address.ask(own)
    own += [{"role": "assistant", "content": "Tea."}, {"role": "user", "content": "With milk?"}]
    address.provider.next(completion("Yes."))
    await address.ask(own)
    written = await turns(wire, 4)
    assert sorted(spoken(written)) == sorted(
        [*[(each["role"], each["content"]) for each in own], ("assistant", "Yes.")]
    )
    assert len({record["conversation_id"] for record in written}) == 1


async def test_a_streamed_answer_passes_as_it_comes_and_is_stored(address: OpenAiAddress, wire: FakeWire) -> None:
    waits = asyncio.Event()
    address.provider.next(event("Tea"), event(".") + LAST, headers=EVENTS, waits=waits)
    headers = {"x-modestream-user": "u1"}
    async with address.http.stream("POST", COMPLETIONS, content=RAW, headers=headers) as answer:
        pieces = answer.aiter_bytes()
        first = await anext(pieces)
        waits.set()
        rest = b"".join([piece async for piece in pieces])
    assert first == event("Tea")
    assert rest == event(".") + LAST
    assert spoken(await turns(wire, 2))[1] == ("assistant", "Tea.")


@pytest.mark.parametrize(
    "pieces", [(event("Tea"), b'data: {"error":{}}\n\n' + DONE), (event("Tea"), b"data: [[[\n\n" + LAST)]
)
async def test_of_a_stream_that_fails_the_question_alone_is_stored(
    address: OpenAiAddress, wire: FakeWire, pieces: tuple[bytes, ...]
) -> None:
    address.provider.next(*pieces, headers=EVENTS)
    failed = await address.post(RAW)
    assert failed.content == b"".join(pieces)
    await address.ask("Coffee?")
    assert spoken(await turns(wire, 3)) == [("user", "Tea!"), ("user", "Coffee?"), ("assistant", "Tea.")]


async def test_a_stream_that_breaks_has_no_end(address: OpenAiAddress, wire: FakeWire) -> None:
    address.provider.next(event("Tea"), LAST, headers=EVENTS, breaks=True)
    with pytest.raises(httpx.TransportError):
        await address.post(RAW)
    await address.ask("Coffee?")
    assert "Tea" not in [text for _, text in spoken(await turns(wire, 3))]


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_an_error_of_the_provider_comes_back_and_is_not_stored(
    address: OpenAiAddress, wire: FakeWire, status: int
) -> None:
    address.provider.next(b'{"error" : {}}', status=status, headers={"retry-after": "7", "content-type": "x/y"})
    answer = await address.post(RAW)
    assert answer.status_code == status
    assert answer.content == b'{"error" : {}}'
    assert answer.headers["retry-after"] == "7"
    assert [record["schema"] for record in wire.records] == ["assemble.v1"]


async def test_a_problem_of_the_provider_passes_as_it_is(address: OpenAiAddress) -> None:
    problem = b'{"type" : "about:blank", "detail": "no"}'
    address.provider.next(problem, status=422, headers={"content-type": "application/problem+json"})
    assert (await address.post(RAW)).content == problem


async def test_a_call_may_leave_nothing(address: OpenAiAddress, wire: FakeWire) -> None:
    await address.ask(store="false")
    await address.ask("Coffee?")
    assert spoken(await turns(wire, 2))[0] == ("user", "Coffee?")


async def test_a_call_of_tools_is_no_answer_to_store(address: OpenAiAddress, wire: FakeWire) -> None:
    address.provider.next(completion(None))
    await address.ask()
    await address.ask("Coffee?")
    assert spoken(await turns(wire, 3)) == [("user", "Tea or coffee?"), ("user", "Coffee?"), ("assistant", "Tea.")]


async def test_a_text_too_long_for_a_turn_becomes_several(address: OpenAiAddress, wire: FakeWire) -> None:
    await address.ask("x" * 40_000)
    written = await turns(wire, 3)
    assert [len(record["content"]) for record in written[:2]] == [32_768, 7_232]
    assert len({record["turn_id"] for record in written}) == 3


class AwayWire(FakeWire):
    """Answers no questions, and takes turns once it is there."""

    def __init__(self) -> None:
        super().__init__()
        self.is_there = False

    async def request(self, topic: str, value: Json, **_: Any) -> tuple[Reply, Written]:
        await asyncio.Event().wait()
        raise AssertionError

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        if not self.is_there:
            raise MemoryUnreachable("gone")
        return await super().write(topic, value, principal=principal, timeout=timeout)


async def test_memory_that_is_late_or_away_costs_nothing_and_gets_its_turns_later() -> None:
    wire = AwayWire()
    async with openai_address(MemoryService(wire)) as address:
        answer = await address.post(RAW, wait="0.05")
        assert answer.status_code == 200
        assert answer.headers["x-modestream-memory"] == "unavailable"
        assert address.provider.asked[0].body == RAW
        assert address.count("waiting") == 2
        wire.is_there = True
        assert spoken(await turns(wire, 2)) == [("user", "Tea!"), ("assistant", "Tea.")]


async def test_memory_that_fails_oddly_costs_nothing(address: OpenAiAddress, wire: FakeWire) -> None:
    wire.results["assemble.v1"] = {"odd": 1}
    answer = await address.post(RAW)
    assert answer.status_code == 200
    assert answer.headers["x-modestream-memory"] == "unavailable"


async def test_the_user_may_stand_in_the_body(address: OpenAiAddress, wire: FakeWire) -> None:
    await address.post(RAW, user=None)
    assert asked_of(wire)["scope"]["user_id"] == "u1"


async def test_the_header_comes_before_the_body(address: OpenAiAddress, wire: FakeWire) -> None:
    await address.post(RAW, user="u2")
    assert asked_of(wire)["scope"]["user_id"] == "u2"


async def test_without_a_user_there_is_no_call(address: OpenAiAddress) -> None:
    answer = await address.ask(user=None)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid_value"
    assert answer.headers["content-type"] == "application/json"
    assert address.provider.asked == []


@pytest.mark.parametrize(
    ("body", "status", "code", "kind"),
    [(b"{", 400, "invalid_json", "invalid_request_error"),
     (b'{"x":"' + b"x" * (16 * 1024 * 1024) + b'"}', 413, "too_large", "invalid_request_error"),
     (b'{"x":[' + b"1," * 300_000 + b"1]}", 413, "too_large", "invalid_request_error")],
    ids=["no JSON", "too many bytes", "too many values"],
)  # fmt: skip
async def test_a_bad_body_is_refused_in_openais_shape(
    address: OpenAiAddress, body: bytes, status: int, code: str, kind: str
) -> None:
    answer = await address.post(body)
    error = answer.json()["error"]
    assert answer.status_code == status
    assert error["code"] == code
    assert error["type"] == kind
    assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "x"}], [{"role": "user", "content": ""}]])
async def test_what_asks_nothing_passes_as_it_is(address: OpenAiAddress, messages: list[Json]) -> None:
    answer = await address.ask(messages)
    assert answer.status_code == 200
    assert answer.headers["x-modestream-memory"] == "used"
    assert json.loads(address.provider.asked[0].body)["messages"] == messages


async def test_the_provider_gets_its_own_key_and_few_header_fields(address: OpenAiAddress) -> None:
    headers = {"authorization": "Bearer ms_own", "x-api-key": "ms_own", "cookie": "a=b", "x-modestream-user": "u1"}
    more = {"openai-beta": "b1", "openai-organization": "o", "x-forwarded-for": "1.2.3.4"}
    await address.http.post(COMPLETIONS, content=RAW, headers=headers | more)
    sent = address.provider.asked[0].headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert sent["openai-beta"] == "b1"
    assert not {"x-api-key", "cookie", "openai-organization", "x-forwarded-for", "x-modestream-user"} & set(sent)
    assert "ms_own" not in json.dumps(sent)


async def test_header_fields_of_the_provider_come_back_but_for_a_few(address: OpenAiAddress) -> None:
    headers = {"x-ratelimit-remaining": "3", "set-cookie": "a=b", "access-control-allow-origin": "*"}
    address.provider.next(headers=headers | {"x-modestream-memory": "forged", "content-type": "application/json"})
    answer = await address.post(RAW)
    assert answer.headers["x-ratelimit-remaining"] == "3"
    assert answer.headers.get_list("x-modestream-memory") == ["used"]
    assert not {"set-cookie", "access-control-allow-origin"} & set(answer.headers)


async def test_a_redirect_is_followed_by_nobody(address: OpenAiAddress) -> None:
    address.provider.next(b"x", status=307, headers={"location": "http://127.0.0.1:9/"})
    answer = await address.post(RAW)
    assert answer.status_code == 502
    assert answer.json()["error"]["type"] == "server_error"
    assert "location" not in answer.headers


async def test_a_provider_that_hangs_up_is_unavailable(address: OpenAiAddress, wire: FakeWire) -> None:
    address.provider.next(b"x", breaks=True, waits=_set())
    answer = await address.post(RAW)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"
    assert [record["schema"] for record in wire.records] == ["assemble.v1"]


async def test_a_compressed_answer_is_read_too(address: OpenAiAddress, wire: FakeWire) -> None:
    import gzip  # noqa: PLC0415

    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    address.provider.next(gzip.compress(completion("Tea.")), headers=headers)
    assert (await address.post(RAW)).content == completion("Tea.")
    assert spoken(await turns(wire, 2))[1] == ("assistant", "Tea.")


async def test_an_unknown_compression_passes_as_it_is(address: OpenAiAddress) -> None:
    headers = {"content-type": "application/json", "content-encoding": "x-odd"}
    address.provider.next(b"odd", headers=headers)
    answer = await address.post(RAW)
    assert answer.headers["content-encoding"] == "x-odd"
    assert answer.content == b"odd"


async def test_cookies_of_the_provider_are_not_kept(address: OpenAiAddress) -> None:
    address.provider.next(headers={"set-cookie": "a=b; Path=/", "content-type": "application/json"})
    for _ in range(2):
        await address.post(RAW)
    assert "cookie" not in address.provider.asked[1].headers


async def test_a_caller_that_hangs_up_ends_the_providers_work(address: OpenAiAddress) -> None:
    address.provider.next(b"x", waits=asyncio.Event())
    asking = asyncio.create_task(address.post(RAW))
    async with asyncio.timeout(5):
        while not address.provider.asked:
            await asyncio.sleep(0.005)
        asking.cancel()
        await address.provider.left.wait()


async def test_a_caller_that_leaves_a_stream_ends_it(address: OpenAiAddress, wire: FakeWire) -> None:
    address.provider.next(event("Tea"), LAST, headers=EVENTS, waits=asyncio.Event())
    async with address.http.stream("POST", COMPLETIONS, content=RAW) as answer:
        await anext(answer.aiter_bytes())
    async with asyncio.timeout(5):
        await address.provider.left.wait()
    assert spoken(await turns(wire, 1)) == [("user", "Tea!")]


@pytest.mark.parametrize(
    ("first", "headers"),
    [(event("Tea.") + LAST, EVENTS),
     (completion("Tea."), {"content-type": "application/json", "content-length": str(len(completion("Tea.")))})],
    ids=["streamed", "whole"],
)  # fmt: skip
async def test_an_answer_whose_last_bytes_the_caller_has_is_stored(
    address: OpenAiAddress, wire: FakeWire, first: bytes, headers: Json
) -> None:
    address.provider.next(first, b"", headers=headers, waits=asyncio.Event())
    async with address.http.stream("POST", COMPLETIONS, content=RAW) as answer:
        await anext(answer.aiter_bytes())
    assert spoken(await turns(wire, 2))[1] == ("assistant", "Tea.")


async def test_a_header_field_may_have_any_letters(address: OpenAiAddress) -> None:
    headers = {b"x-modestream-user": b"u1", b"user-agent": "Zoë".encode()}
    assert (await address.http.post(COMPLETIONS, content=RAW, headers=headers)).status_code == 200


async def test_models_are_the_providers(address: OpenAiAddress) -> None:
    address.provider.next(b'{"data" : []}')
    answer = await address.http.get("/openai/v1/models")
    assert answer.content == b'{"data" : []}'
    assert address.provider.asked[0].path == "/v1/models"


async def test_calls_of_the_provider_take_no_places_of_others(wire: FakeWire) -> None:
    limits, waits = Limits(in_flight=3, in_flight_per_address=2), asyncio.Event()
    async with openai_address(MemoryService(wire), limits=limits, has_api=True) as address:
        for _ in range(2):
            address.provider.next(waits=waits)
        asking = [asyncio.create_task(address.post(RAW)) for _ in range(2)]
        async with asyncio.timeout(5):
            while len(address.provider.asked) < 2:
                await asyncio.sleep(0.005)
        refused, other = await address.post(RAW), await address.http.get("/v1/users/u1/modes")
        waits.set()
        answered = [(await each).status_code for each in asking]
    assert refused.status_code == 429
    assert other.status_code == 200
    assert answered == [200, 200]
    assert refused.json()["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_a_provider_it_is_unavailable(wire: FakeWire, method: str) -> None:
    path = {"GET": "/openai/v1/models", "POST": COMPLETIONS}[method]
    async with openai_address(MemoryService(wire), has_provider=False) as address:
        answer = await address.http.request(method, path, content=RAW)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"


async def test_a_path_that_is_none_is_told_in_openais_shape(address: OpenAiAddress) -> None:
    answer = await address.http.post("/openai/v1/embeddings", json={})
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "not_found_error"


class OddCallers:
    async def caller_of(self, headers: Headers, address: str) -> Caller:
        raise ZeroDivisionError


async def test_a_defect_is_told_in_openais_shape(wire: FakeWire) -> None:
    async with openai_address(MemoryService(wire), callers=OddCallers()) as address:
        answer = await address.post(RAW)
    assert answer.status_code == 502
    assert answer.json()["error"]["type"] == "server_error"


class KeysUser:
    """Every request has a key with a user of its own; one without a key is refused."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        if "authorization" not in headers:
            raise Refused("unauthenticated", "a key is needed")
        return Caller("k1", "app", own_user="owner")


@pytest.fixture
async def keyed(wire: FakeWire) -> AsyncIterator[OpenAiAddress]:
    async with openai_address(MemoryService(wire), callers=KeysUser()) as served:
        served.http.headers["authorization"] = "Bearer ms_k1"
        yield served


async def test_a_keys_user_comes_before_all_others(keyed: OpenAiAddress, wire: FakeWire) -> None:
    await keyed.post(RAW, user="u2")
    users = {record["scope"]["user_id"] for record in [asked_of(wire), *await turns(wire, 2)]}
    assert users == {"owner"}


async def test_the_keys_principal_asks_and_stores(keyed: OpenAiAddress, wire: FakeWire) -> None:
    await keyed.post(RAW)
    await turns(wire, 2)
    assert {principal for _, _, principal in wire.sent} == {"app"}


async def test_an_unknown_key_is_refused_in_openais_shape(keyed: OpenAiAddress) -> None:
    del keyed.http.headers["authorization"]
    answer = await keyed.post(RAW)
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"


def _set() -> asyncio.Event:
    event_ = asyncio.Event()
    event_.set()
    return event_
