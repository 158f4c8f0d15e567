import pytest

from agents.rules.items.claim_reading import extract_claim
from agents.rules.items.claims import (
    MAX_CLAIM_VALUES,
    apply_successor,
    claims_of,
    preceding_item_ids,
    successor,
    update_claim,
)
from schemas.state.memories import Claim, ClaimEntry, Item, Memory, Support
from tests.builders.memories import made


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The deploy target is fly.io now.", "Actually, we moved the deploy target to AWS."),
        ("The deploy target is fly.io.", "The deploy target isn't fly.io but AWS."),
        ("The deploy target is fly.io.", "No, the new deploy target is AWS, not fly.io."),
        ("The port of the metrics server is 9410.", "The port of the metrics server is 9411 now."),
        ("My birthday is on 3 May.", "Actually, my birthday is 4 May."),
        ("I live in Lyon.", "I now live in Paris."),
        ("My sister's birthday is 3 May.", "My sister's birthday is 5 May."),
        ("We decided to use PostgreSQL for the ledger.", "We decided to use MySQL for the ledger instead."),
        ("Das Deploy-Ziel ist fly.io.", "Das Deploy-Ziel ist jetzt AWS."),
        ("Vivo en Madrid.", "Vivo ahora en Sevilla."),
    ],
)
def test_contradicting_sentences_share_a_claim(earlier: str, later: str) -> None:
    claim = extract_claim(earlier, "ana")
    assert claim is not None
    assert extract_claim(later, "ana") == claim


@pytest.mark.parametrize("text", ["I live in Lyon.", "My name is Ana.", "My sister's birthday is 3 May."])
def test_first_person_claims_are_per_speaker(text: str) -> None:
    assert extract_claim(text, "ana") != extract_claim(text, "bob")


def test_project_claims_are_independent_of_the_speaker() -> None:
    text = "The deploy target is fly.io."
    assert extract_claim(text, "ana") == extract_claim(text, "bob") == "deploy target|is"


@pytest.mark.parametrize(
    "text",
    [
        "I like tea.",
        "My friend is Ana.",
        "The API is fast.",
        "The API is written in Go.",
        "The port is 5432.",
        "The deadline is Monday.",
        "The deploy target is unclear.",
        "The deploy target is not AWS.",
        "We use PostgreSQL 16.",
        "We moved to Slack.",
        "We live in 62 square metres.",
        "The one I told you of is Orvane.",
        "She said the deploy target is AWS.",
    ],
)
def test_compatible_statements_have_no_claim(text: str) -> None:
    assert extract_claim(text, "ana") is None


@pytest.mark.parametrize("text", ["", "?!", "the", "{subject} is 5", "The {own} port is 5."])
def test_braces_in_a_text_are_literal(text: str) -> None:
    assert extract_claim(text, "{subject}") in {None, "own port|is"}


def item_of(name: str, *claims_by_minute: tuple[int, str | None]) -> Memory:
    turns = [(made(name, number), claim) for number, claim in claims_by_minute]
    supports = tuple(
        Support(
            memory_id=turn.memory_id,
            turn_id="t",
            text_hash="h",
            occurred_at=turn.occurred_at,
            source=turn.source,
            type="semantic",
            kind="fact",
            text=name,
            start=0,
            end=1,
            confidence=0.5,
            stability=0.5,
            claim=claim,
        )
        for turn, claim in turns
    )
    return made(name, 99, memory_id=name, type="semantic", origin="extracted", item=Item(supports=supports))


def claims_by_key(*items: Memory) -> dict[str, Claim]:
    claims: dict[str, Claim] = {}
    for item in items:
        for key, each in claims_of(item).items():
            claims[key] = update_claim(claims.get(key, Claim()), item.memory_id, each)
    return claims


def successor_id(item: Memory, *others: Memory) -> str | None:
    next_one = successor(item, claims_by_key(item, *others))
    return next_one and next_one.memory_id


def test_next_entry_is_the_successor() -> None:
    first, second, third = item_of("one", (1, "port")), item_of("two", (2, "port")), item_of("three", (3, "port"))
    assert [
        successor_id(first, third, second),
        successor_id(second, third, first),
        successor_id(third, first, second),
    ] == ["two", "three", None]


def test_repeated_item_is_current_again() -> None:
    first, second = item_of("one", (1, "port"), (3, "port")), item_of("two", (2, "port"))
    assert successor_id(first, second) is None
    assert successor_id(second, first) == "one"


def test_other_claims_scopes_and_modes_do_not_supersede() -> None:
    first, second = item_of("one", (1, "port")), item_of("other", (2, "host"))
    elsewhere = item_of("elsewhere", (3, "port")).model_copy(update={"mode": "code"})
    of_another = item_of("of another", (3, "port")).model_copy(update={"scope": {"user_id": "ben"}})
    assert successor_id(first, second, elsewhere, of_another) is None


def test_item_is_current_while_one_of_its_claims_is() -> None:
    both = item_of("both", (1, "ana lives"), (2, "ben lives"))
    ana, ben = item_of("ana", (5, "ana lives")), item_of("ben", (4, "ben lives"))
    assert successor_id(both, ana) is None
    assert successor_id(both, ben) is None
    assert successor_id(both, ana, ben) == "ben"


def test_item_with_a_support_without_claim_is_current() -> None:
    assert successor_id(item_of("one", (1, "port"), (2, None)), item_of("two", (3, "port"))) is None


def test_merged_item_has_no_claims_and_keeps_its_successor() -> None:
    merged = item_of("one", (1, "port")).model_copy(update={"superseded_in": "run", "superseded_by": "two"})
    assert claims_of(merged) == {}
    assert apply_successor(merged, None) == merged


def test_successor_is_recorded_with_its_time_and_removed() -> None:
    first, next_one = item_of("one", (1, "port")), ClaimEntry(made("x", 7).occurred_at, 7, "two")
    replaced = apply_successor(first, next_one)
    assert replaced.item is not None
    assert replaced.superseded_by == "two"
    assert replaced.item.valid_until == next_one.occurred_at
    assert apply_successor(replaced, None) == first


def test_preceding_items_may_change_their_successor() -> None:
    claim = next(iter(claims_by_key(*(item_of(str(number), (number, "port")) for number in range(3))).values()))
    assert [preceding_item_ids(claim, str(number)) for number in range(4)] == [[], ["0"], ["1"], []]


def test_oldest_entries_are_dropped() -> None:
    items = [item_of(f"{number:03}", (number, "port")) for number in range(MAX_CLAIM_VALUES + 2)]
    claims = claims_by_key(*reversed(items))
    [claim] = claims.values()
    assert len(claim.held) == MAX_CLAIM_VALUES
    found = successor(items[0], claims)
    assert found is not None
    assert found.memory_id == "002"
