"""Versions on a memory's page: former texts out of the log of turns, with the words that changed."""

import json
import re
from html import unescape

from gateway.pages.relations import changed_words
from gateway.service.service import MemoryService
from schemas.messages.records import Record
from schemas.state.memories import hash_texts
from tests.builders.records import memory_record
from tests.fakes.recorded_turns import FakeRecordedTurns
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over, told_after

PAGE = "/admin/memories/m1?user=ana"

TEXTS = ("We moved to Leeds.", "We moved to <York>.", "We moved to Kent, in May.")

FIRST_MS = 1_772_357_401_000
"""2026-03-01T09:30:01Z, the time of the first version; the others follow by a second each."""


def turn_record(number: int, text: str, user: bytes = b"ana") -> Record:
    value = json.dumps({"schema": "turn.v1", "turn_id": "t-m1", "content": text}).encode()
    return Record("turns", 1, number, FIRST_MS + 1000 * number, user, value, ())


def wire_of(*texts: str) -> FakeWire:
    """Return a wire whose memory `m1` had these texts; the last one is current."""
    versions = [
        {
            "version": number + 1,
            "current": text == texts[-1],
            "text_hash": hash_texts([text]),
            "first_seen": f"2026-03-01T09:30:{number + 1:02}Z",
        }
        for number, text in enumerate(texts)
    ]
    wire = FakeWire()
    wire.results["get_memory"] = memory_record("m1", texts[-1], versions=versions)
    wire.results["list_modes"] = {"modes": [{"name": "journal"}]}
    wire.results["retrieve.v1"] = {"hits": []}
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    return wire


async def page_over(log: FakeRecordedTurns, *texts: str) -> str:
    async with pages_over(MemoryService(wire_of(*texts), recorded_turns=log)) as http:
        answer = await http.get(PAGE)
    assert answer.status_code == 200
    return answer.text


async def test_versions_show_the_words_that_changed() -> None:
    page = await page_over(FakeRecordedTurns(*map(turn_record, range(3), TEXTS)), *TEXTS)
    versions = page[page.index('id="versions"') :]
    assert "We moved to <del>Leeds.</del><ins>&lt;York&gt;.</ins>" in versions
    assert "We moved to <del>&lt;York&gt;.</del><ins>Kent, in May.</ins>" in versions
    assert ">We moved to Leeds.<" in versions


async def test_a_text_that_the_log_no_longer_has_is_said_to_be_gone() -> None:
    page = await page_over(FakeRecordedTurns(turn_record(1, TEXTS[1])), *TEXTS)
    assert page.count("The log of turns no longer has this text.") == 1
    assert "<ins>Kent, in May.</ins>" in page


async def test_other_records_of_the_same_time_are_passed_over() -> None:
    broken = Record("turns", 1, 7, FIRST_MS, b"ana", b"{no json", ())
    log = FakeRecordedTurns(turn_record(0, "Another text.", b"ben"), broken, turn_record(0, TEXTS[0]))
    assert "<del>Leeds.</del>" in await page_over(log, *TEXTS[:2])


async def test_the_page_stands_while_the_log_is_away() -> None:
    log = FakeRecordedTurns()
    log.is_away = True
    assert "Former texts could not be read now." in await page_over(log, *TEXTS)


async def test_a_memory_of_one_text_has_no_versions() -> None:
    assert 'id="versions"' not in await page_over(FakeRecordedTurns(), TEXTS[0])


async def test_a_former_text_is_restored_as_a_further_edit() -> None:
    wire = wire_of(*TEXTS[:2])
    log = FakeRecordedTurns(*map(turn_record, range(2), TEXTS))
    async with pages_over(MemoryService(wire, recorded_turns=log)) as http:
        page = (await http.get(PAGE)).text
        form = page[page.index("data-version=") :].partition("</form>")[0]
        fields = {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}
        restored = await http.post(PAGE, data=fields)
        assert await told_after(http, restored) == "Saved the text as a new version."
    assert [turn["content"] for topic, turn, _ in wire.sent if topic == "turns"] == [TEXTS[0]]


def test_unchanged_words_are_not_marked() -> None:
    assert str(changed_words("a b c", "a x c")) == "a <del>b </del><ins>x </ins>c"
