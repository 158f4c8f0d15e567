"""Which of the items that contradict each other stands."""

from agents.rules.items.claim_resolution import (
    MAX_CLAIM_VALUES,
    apply_successor,
    claims_of,
    preceding_item_ids,
    successor,
    update_claim,
)
from schemas.claims import Claim, ClaimEntry
from schemas.memories import Item, Memory, Support
from tests.builders.memories import made


def item_of(name: str, *said: tuple[int, str | None]) -> Memory:
    """An item that was said in these minutes, each time claiming this."""
    turns = [(made(name, number), claim) for number, claim in said]
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


def held(*items: Memory) -> dict[str, Claim]:
    """What is held when these items are there."""
    claims: dict[str, Claim] = {}
    for item in items:
        for key, one in claims_of(item).items():
            claims[key] = update_claim(claims.get(key, Claim()), item.memory_id, one)
    return claims


def after(item: Memory, *others: Memory) -> str | None:
    """What took an item's place."""
    next_one = successor(item, held(item, *others))
    return next_one and next_one.memory_id


def test_what_is_said_next_takes_the_place() -> None:
    one, two, three = item_of("one", (1, "port")), item_of("two", (2, "port")), item_of("three", (3, "port"))
    assert [after(one, three, two), after(two, three, one), after(three, one, two)] == ["two", "three", None]


def test_what_is_said_again_stands_again() -> None:
    one, two = item_of("one", (1, "port"), (3, "port")), item_of("two", (2, "port"))
    assert (after(one, two), after(two, one)) == (None, "one")


def test_other_claims_scopes_and_modes_take_no_place() -> None:
    one, other = item_of("one", (1, "port")), item_of("other", (2, "host"))
    elsewhere = item_of("elsewhere", (3, "port")).model_copy(update={"mode": "code"})
    of_another = item_of("of another", (3, "port")).model_copy(update={"scope": {"user_id": "ben"}})
    assert after(one, other, elsewhere, of_another) is None


def test_an_item_stands_while_anything_that_it_claims_does() -> None:
    both = item_of("both", (1, "ana lives"), (2, "ben lives"))
    ana, ben = item_of("ana", (5, "ana lives")), item_of("ben", (4, "ben lives"))
    assert (after(both, ana), after(both, ben), after(both, ana, ben)) == (None, None, "ben")


def test_an_item_that_was_also_said_without_a_claim_stands() -> None:
    assert after(item_of("one", (1, "port"), (2, None)), item_of("two", (3, "port"))) is None


def test_what_a_consolidation_merged_claims_nothing_and_stays_as_it_decided() -> None:
    merged = item_of("one", (1, "port")).model_copy(update={"superseded_in": "run", "superseded_by": "two"})
    assert claims_of(merged) == {}
    assert apply_successor(merged, None) == merged


def test_what_took_the_place_is_noted_with_its_time_and_taken_back() -> None:
    one, next_one = item_of("one", (1, "port")), ClaimEntry(made("x", 7).occurred_at, 7, "two")
    replaced = apply_successor(one, next_one)
    assert replaced.item is not None
    assert (replaced.superseded_by, replaced.item.valid_until) == ("two", next_one.occurred_at)
    assert apply_successor(replaced, None) == one


def test_those_whose_place_may_be_taken_stand_before() -> None:
    claim = next(iter(held(*(item_of(str(number), (number, "port")) for number in range(3))).values()))
    assert [preceding_item_ids(claim, str(number)) for number in range(4)] == [[], ["0"], ["1"], []]


def test_the_oldest_are_held_no_more() -> None:
    items = [item_of(f"{number:03}", (number, "port")) for number in range(MAX_CLAIM_VALUES + 2)]
    claims = held(*reversed(items))
    [claim] = claims.values()
    assert len(claim.held) == MAX_CLAIM_VALUES
    found = successor(items[0], claims)
    assert found is not None
    assert found.memory_id == "002"
