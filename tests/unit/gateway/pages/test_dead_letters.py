"""Dead letters in the window: what is shown to which caller, and what is published again."""

import json
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from gateway.service.calls import Caller
from gateway.service.dead_letters import REPLAYED_FROM
from gateway.service.dismissals import Dismissals
from gateway.service.service import MemoryService
from schemas.messages.records import Headers
from schemas.state.policies import Grant
from tests.fakes.dead_letter_topic import FakeDeadLetterTopic
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

PAGE = "/admin/dead-letters"


def turn(user: str, content: str = "hello", project: str | None = None) -> bytes:
    scope = {"user_id": user, **({"project_id": project} if project else {})}
    return json.dumps({"schema": "turn.v1", "scope": scope, "content": content}).encode()


@pytest.fixture
def topic() -> FakeDeadLetterTopic:
    return FakeDeadLetterTopic()


@pytest.fixture
def service(topic: FakeDeadLetterTopic) -> MemoryService:
    wire = FakeWire()
    wire.results["list.v1"] = {"items": [], "next": None}
    return MemoryService(wire, dead_letters=topic.letters)


def granted(**grant: object) -> Caller:
    return Caller("app", "app", grants=(Grant.model_validate(grant),))


async def test_letters_are_shown_newest_first_and_escaped(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    topic.put(b"u1", turn("u1", "<script>alert(1)</script>"))
    topic.put(b"u2", turn("u2", "later"), code="not_allowed")
    async with pages_over(service) as http:
        page = (await http.get(PAGE)).text
    assert "<script>alert" not in page
    assert "<script>alert" in unescape(page)
    assert page.index("Why not_allowed") < page.index("Why unknown_mode")


@pytest.mark.parametrize(
    ("caller", "seen"),
    [
        (Caller(), {"mine", "other", "forged", "broken"}),
        (granted(user_id="*"), {"mine", "other", "forged", "broken"}),
        (granted(user_id="u1"), {"mine"}),
        (granted(user_id="u1", project_id="p2"), set()),
        (granted(user_id="*", project_id="p1"), {"mine", "other"}),
        (Caller(own_user="u1"), {"mine"}),
    ],
)
async def test_a_caller_sees_letters_of_its_users_alone(
    topic: FakeDeadLetterTopic, service: MemoryService, caller: Caller, seen: set[str]
) -> None:
    topic.put(b"u1", turn("u1", "mine", "p1"))
    topic.put(b"u2", turn("u2", "other", "p1"))
    topic.put(b"u1", turn("u2", "forged", "p1"))
    topic.put(b"u1", b'{"broken', code="invalid_json")
    async with pages_over(service, caller) as http:
        page = unescape((await http.get(PAGE)).text)
        statuses = [(await http.get(f"{PAGE}/0-{number}")).status_code for number in range(4)]
    assert {name for name in ("mine", "other", "forged", "broken") if name in page} == seen
    assert [status == 200 for status in statuses] == [name in seen for name in ("mine", "other", "forged", "broken")]


async def test_a_foreign_user_is_refused(service: MemoryService) -> None:
    async with pages_over(service, granted(user_id="u1")) as http:
        assert (await http.get(f"{PAGE}?user=u2")).status_code == 403


async def test_a_replay_publishes_the_original_and_marks_it(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    letter = topic.put(b"u1", turn("u1"), headers=(("principal", b"app"), ("replayed_from", b"9-9")))
    async with pages_over(service) as http:
        asked = (await http.get(f"{PAGE}/replay?letter={letter}")).text
        assert "1 record" in asked
        answer = await http.post(f"{PAGE}/replay?letter={letter}", data={"until": ""})
        again = await http.post(f"{PAGE}/replay?letter={letter}", data={"until": ""})
        page = (await http.get(PAGE)).text
    assert answer.status_code == 303
    assert answer.headers["location"] == "/admin/dead-letters"
    (sent,) = topic.published
    assert sent.topic == "memory.turns"
    assert sent.key == b"u1"
    assert sent.value == turn("u1")
    assert sent.headers == (("replayed_from", b"0-0"),)
    assert again.status_code == 422
    assert "published again" in page


@pytest.mark.parametrize("first", [(("principal", b"admin"),), (("principal", b"a"), ("principal", b"b")), ()])
async def test_a_replay_acts_as_the_caller_that_asked_for_it(
    topic: FakeDeadLetterTopic, service: MemoryService, first: Headers
) -> None:
    letter = topic.put(b"u1", turn("u1"), headers=(*first, ("traceparent", b"t")))
    async with pages_over(service, granted(user_id="*")) as http:
        await http.post(f"{PAGE}/replay?letter={letter}", data={"until": ""})
    (sent,) = topic.published
    assert sent.headers == (("traceparent", b"t"), ("principal", b"app"), ("replayed_from", b"0-0"))


async def test_a_letter_that_comes_back_is_said(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    letter = topic.put(b"u1", turn("u1"))
    async with pages_over(service) as http:
        await http.post(f"{PAGE}/replay?letter={letter}", data={"until": ""})
        topic.put(b"u1", turn("u1"), headers=topic.published[0].headers)
        page = (await http.get(f"{PAGE}/{letter}")).text
    assert f"{PAGE}/0-1" in page
    assert "came back" in page


async def test_all_of_a_code_but_no_later_ones(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    for number in range(3):
        topic.put(b"u1", turn("u1", f"turn {number}"))
    topic.put(b"u1", turn("u1"), code="too_large", headers=(("dead_letter_cut", b"9000000"),))
    topic.put(b"u1", b'{"scope": {"user_id": "u1"}}', topic="memory.changes")
    async with pages_over(service) as http:
        asked = (await http.get(f"{PAGE}/replay?code=unknown_mode")).text
        until = asked.partition('name="until" value="')[2].partition('"')[0]
        topic.put(b"u1", turn("u1", "a later one"))
        assert (await http.post(f"{PAGE}/replay?code=unknown_mode", data={})).status_code == 422
        answer = await http.post(f"{PAGE}/replay?code=unknown_mode", data={"until": until})
        page = unescape((await http.get(PAGE)).text)
    assert answer.status_code == 303
    assert [json.loads(record.value or b"")["content"] for record in topic.published] == ["turn 0", "turn 1", "turn 2"]
    assert "was cut, so the original bytes are gone" in page
    assert "event of the service itself" in page


async def test_many_letters_need_their_number_typed(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    for number in range(120):
        topic.put(b"u1", turn("u1", f"turn {number}"))
    async with pages_over(service) as http:
        asked = (await http.get(f"{PAGE}/replay")).text
        until = asked.partition('name="until" value="')[2].partition('"')[0]
        refused = await http.post(f"{PAGE}/replay", data={"until": until})
        assert refused.status_code == 422
        assert topic.published == []
        await http.post(f"{PAGE}/replay", data={"until": until, "typed": "120"})
        assert len(topic.published) == 120
        first = (await http.get(PAGE)).text
        older = unescape(first).partition("cursor=")[2].partition('"')[0]
        second = (await http.get(f"{PAGE}?cursor={older}")).text
    assert "turn 119" in unescape(first)
    assert "turn 69" not in unescape(first)
    assert "turn 69" in unescape(second)


async def test_a_replay_needs_manage(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    letter = topic.put(b"u1", turn("u1"))
    async with pages_over(service, granted(user_id="u1", may=["read", "write"])) as http:
        assert (await http.get(PAGE)).status_code == 200
        answer = await http.post(f"{PAGE}/replay?letter={letter}", data={"until": ""})
    assert answer.status_code == 403
    assert topic.published == []


async def test_an_edited_letter_is_published_with_its_key(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    letter = topic.put(b"u1", turn("u1", "in the mode poetry"))
    async with pages_over(service) as http:
        assert "in the mode poetry" in (await http.get(f"{PAGE}/{letter}")).text
        edited = turn("u1", "mended").decode()
        done = await http.post(f"{PAGE}/{letter}", data={"do": "edit", "value": edited})
        again = await http.post(f"{PAGE}/{letter}", data={"do": "edit", "value": edited})
    assert done.status_code == 303
    assert again.status_code == 422
    [record] = topic.published
    assert record.key == b"u1"
    assert json.loads(record.value or b"")["content"] == "mended"


@pytest.mark.parametrize("value", [turn("u2").decode(), "no JSON", "[]"])
async def test_an_edit_stays_a_record_of_its_user(
    topic: FakeDeadLetterTopic, service: MemoryService, value: str
) -> None:
    letter = topic.put(b"u1", turn("u1"))
    async with pages_over(service) as http:
        refused = await http.post(f"{PAGE}/{letter}", data={"do": "edit", "value": value})
    assert refused.status_code == 422
    assert topic.published == []


async def test_an_edit_and_a_dismissal_need_manage(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    letter = topic.put(b"u1", turn("u1"))
    async with pages_over(service, granted(user_id="u1", may=["read", "write"])) as http:
        page = (await http.get(f"{PAGE}/{letter}")).text
        edited = await http.post(f"{PAGE}/{letter}", data={"do": "edit", "value": turn("u1").decode()})
        dismissed = await http.post(f"{PAGE}/{letter}", data={"do": "dismiss"})
    assert 'value="dismiss"' not in page
    assert {edited.status_code, dismissed.status_code} <= {403, 422}
    assert topic.published == []


async def test_a_dismissed_letter_is_listed_apart(topic: FakeDeadLetterTopic, service: MemoryService) -> None:
    letter = topic.put(b"u1", turn("u1", "dealt with"))
    async with pages_over(service) as http:
        await http.post(f"{PAGE}/{letter}", data={"do": "dismiss"})
        assert "dealt with" not in (await http.get(PAGE)).text
        assert "dealt with" in (await http.get(f"{PAGE}?dismissed=1")).text
        await http.post(f"{PAGE}/{letter}", data={"do": "restore"})
        assert "dealt with" in (await http.get(PAGE)).text


def dismissed(topic: FakeDeadLetterTopic) -> list[str]:
    return [str(letter.position) for letter in topic.list.newest() if topic.list.is_dismissed(letter)]


async def test_a_dismissal_outlives_the_gateway(tmp_path: Path) -> None:
    file = tmp_path / "imports" / "dismissed-letters"
    before = FakeDeadLetterTopic(dismissals=Dismissals(file))
    before.put(b"u1", turn("u1"))
    before.put(b"u1", turn("u1"))
    async with pages_over(MemoryService(FakeWire(), dead_letters=before.letters)) as http:
        await http.post(f"{PAGE}/0-0", data={"do": "dismiss"})
        await http.post(f"{PAGE}/0-1", data={"do": "dismiss"})
        await http.post(f"{PAGE}/0-1", data={"do": "restore"})
    after = FakeDeadLetterTopic(dismissals=Dismissals(file))
    after.put(b"u1", turn("u1"))
    after.put(b"u1", turn("u1"))
    assert dismissed(after) == ["0-0"]


async def test_a_dismissal_names_no_letter_of_a_topic_that_was_made_again(topic: FakeDeadLetterTopic) -> None:
    topic.put(b"u1", turn("u1"))
    [letter] = topic.list.newest()
    topic.list.dismiss(replace(letter, at_ms=letter.at_ms - 1), dismissed=True)
    assert dismissed(topic) == []


async def test_a_dismissal_that_can_not_be_kept_is_refused(tmp_path: Path) -> None:
    (tmp_path / "imports").write_text("no folder")
    topic = FakeDeadLetterTopic(dismissals=Dismissals(tmp_path / "imports" / "dismissed-letters"))
    letter = topic.put(b"u1", turn("u1", "not dealt with"))
    async with pages_over(MemoryService(FakeWire(), dead_letters=topic.letters)) as http:
        assert (await http.post(f"{PAGE}/{letter}", data={"do": "dismiss"})).status_code == 503
        assert "not dealt with" in (await http.get(PAGE)).text


def test_only_the_last_letters_are_kept() -> None:
    topic = FakeDeadLetterTopic(limit=2)
    for _ in range(3):
        topic.put(b"u1", turn("u1"))
    assert [str(each.position) for each in topic.list.newest()] == ["0-2", "0-1"]
    assert topic.letters.is_full


def test_letters_that_name_others_leave_nothing_behind() -> None:
    topic = FakeDeadLetterTopic(limit=2)
    for number in range(20):
        topic.put(b"ana", b"{}", headers=((REPLAYED_FROM, f"1-{number}".encode()),))
    assert len(topic.list._letters) == 2
    assert len(topic.list._replayed) == 2
