"""How likely items still hold: less with age, by the decay of their mode, never twice."""

from datetime import timedelta

import pytest

from agents.rules.consolidation.decay import SHARE_KEPT, aged, faded, succession
from schemas.memories import Evidence, Item, Memory
from schemas.modes import Decay
from tests.builders.memories import START, made


def item(decay: Decay = "medium", times: int = 8) -> Memory:
    evidence = tuple(Evidence(turn_id=f"t-{n}", start=0, end=1) for n in range(times))
    return made("Tea.", origin="distilled", evidence=evidence, decay=decay, item=Item(stability=succession(times)))


def after(days: float, decay: Decay = "medium") -> float:
    memory = aged(item(decay), START + timedelta(days=days))
    assert memory.item is not None
    return memory.item.stability


def test_what_was_said_more_often_is_likelier_to_hold() -> None:
    assert succession(3) < succession(30) < 1


def test_today_an_item_is_as_stable_as_it_began() -> None:
    assert faded(item(), START) is None
    assert faded(item(), START - timedelta(days=3)) is None


@pytest.mark.parametrize(("decay", "days"), [("fast", 7), ("medium", 30), ("slow", 180)])
def test_after_the_half_life_of_its_mode_half_of_what_can_be_lost_is_lost(decay: Decay, days: int) -> None:
    assert after(days, decay) == pytest.approx(0.9 * (SHARE_KEPT + (1 - SHARE_KEPT) / 2), abs=0.026)


def test_what_does_not_decay_stays_and_nothing_is_lost_wholly() -> None:
    assert after(10_000, "none") == pytest.approx(0.9)
    assert after(10_000, "fast") == pytest.approx(0.9 * SHARE_KEPT, abs=0.026)


def test_fading_again_on_the_same_day_changes_nothing_and_later_less_than_twice() -> None:
    memory = aged(item(), START + timedelta(days=40))
    assert faded(memory, START + timedelta(days=40, hours=5)) is None
    assert aged(memory, START + timedelta(days=90)) == aged(item(), START + timedelta(days=90))


def test_a_turn_does_not_fade() -> None:
    assert faded(made("Tea."), START + timedelta(days=400)) is None
