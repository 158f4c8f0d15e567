"""Publishing what was read: in order, bounded, again while the service is away, and from where it was interrupted."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from modestream_client.failures import MemoryUnreachable
from modestream_client.imports import Entry, Message, Problem, publishing
from modestream_client.imports.publishing import ModesFor, Outcome, Tally, TryAgain, publish

Json = dict[str, object]


class Service:
    """Stores turns, and is away as often as it is told."""

    def __init__(self, away: int = 0) -> None:
        self.away = away
        self.stored: list[object] = []
        self.under_way = self.most_under_way = 0

    async def send(self, turn: Json, place: int | str) -> tuple[Outcome, str | None]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.away:
            self.away -= 1
            raise TryAgain from MemoryUnreachable("away")
        outcome: Outcome = "duplicate" if turn["content"] in self.stored else "stored"
        if outcome == "stored":
            self.stored.append(turn["content"])
        return outcome, f"0:{len(self.stored)}"


async def entries(*found: Entry) -> AsyncIterator[Entry]:
    for entry in found:
        yield entry


def messages(count: int) -> list[Entry]:
    return [Message(number, {"content": f"text {number}"}) for number in range(count)]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "FIRST_PAUSE_S", 0.001)


async def test_what_is_stored_there_already_and_refused_is_counted() -> None:
    tally, service = Tally(), Service()
    first, second = messages(2)
    await publish(entries(first, Problem(7, "invalid_value", "no"), second, first), service.send, tally)
    assert tally.counts() == {"read": 4, "stored": 2, "duplicate": 1, "refused": 1}
    assert tally.problems == [Problem(7, "invalid_value", "no")]


async def test_counts_only_grow() -> None:
    seen: list[int] = []
    await publish(entries(*messages(30)), Service().send, Tally(), lambda tally: seen.append(tally.read), window=4)
    assert seen == list(range(1, 31))


async def test_no_more_than_the_window_is_under_way() -> None:
    service = Service()
    await publish(entries(*messages(30)), service.send, Tally(), window=4)
    assert service.most_under_way == 4


async def test_a_turn_is_sent_again_while_the_service_is_away() -> None:
    tally = Tally()
    await publish(entries(*messages(3)), Service(away=5).send, tally)
    assert tally.stored == 3


async def test_an_outage_that_does_not_end_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "PATIENCE_S", 0.01)
    with pytest.raises(MemoryUnreachable):
        await publish(entries(*messages(3)), Service(away=10_000).send, Tally())


async def test_an_interrupted_import_goes_on_behind_what_is_settled() -> None:
    service = Service()
    interrupted = Tally(read=20, stored=20)
    await publish(entries(*messages(30)), service.send, Tally.of(interrupted.result()))
    assert service.stored == [f"text {number}" for number in range(20, 30)]


async def test_the_first_hundred_problems_are_named() -> None:
    tally = Tally()
    await publish(entries(*(Problem(number, "invalid_value", "no") for number in range(150))), Service().send, tally)
    assert [problem.place for problem in tally.problems] == list(range(100))
    assert tally.refused == 150


def mode_of(rules: list[str], entry: Message, mode: str | None = None) -> object:
    applied = ModesFor(rules, mode).applied(entry)
    assert isinstance(applied, Message)
    return applied.turn.get("mode")


def test_a_part_of_an_export_has_its_mode() -> None:
    entry = Message(1, {"content": "x"}, {"project": "Foo=bar", "conversation": "Plans"})
    assert mode_of(["project:Foo=bar=work"], entry) == "work"
    assert mode_of(["conversation:Plans=journal"], entry, "work") == "journal"
    assert mode_of(["project:Other=journal"], entry, "work") == "work"


def test_a_turn_keeps_the_mode_that_its_line_names() -> None:
    assert mode_of([], Message(1, {"content": "x", "mode": "journal"}), "work") == "journal"


@pytest.mark.parametrize("rule", ["Foo=work", "project:Foo", "project:=work", "team:Foo=work", "project:Foo="])
def test_a_rule_of_another_form_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="project:NAME=MODE"):
        ModesFor([rule])
