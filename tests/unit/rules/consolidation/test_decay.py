"""Decay of stability: with age, by the mode's decay, never compounded."""

from datetime import timedelta

import pytest
from modestream_client.hits import Evidence
from modestream_client.vocabulary import Decay

from agents.rules.consolidation.distillation import (
    MIN_STABILITY_SHARE,
    apply_decay,
    decayed_stability,
    rule_of_succession,
)
from schemas.state.memories import Item, Memory
from tests.builders.memories import START, made


def item(decay: Decay = "medium", times: int = 8) -> Memory:
    evidence = tuple(Evidence(turn_id=f"t-{n}", start=0, end=1) for n in range(times))
    return made(
        "Tea.", origin="distilled", evidence=evidence, decay=decay, item=Item(stability=rule_of_succession(times))
    )


def after(days: float, decay: Decay = "medium") -> float:
    memory = apply_decay(item(decay), START + timedelta(days=days))
    assert memory.item is not None
    return memory.item.stability


def test_rule_of_succession_grows_with_repetitions() -> None:
    assert rule_of_succession(3) < rule_of_succession(30) < 1


def test_stability_is_initial_on_the_first_day() -> None:
    assert decayed_stability(item(), START) is None
    assert decayed_stability(item(), START - timedelta(days=3)) is None


@pytest.mark.parametrize(("decay", "days"), [("fast", 7), ("medium", 30), ("slow", 180)])
def test_half_life_halves_the_decaying_share(decay: Decay, days: int) -> None:
    assert after(days, decay) == pytest.approx(0.9 * (MIN_STABILITY_SHARE + (1 - MIN_STABILITY_SHARE) / 2), abs=0.026)


def test_decay_none_stays_and_stability_has_a_floor() -> None:
    assert after(10_000, "none") == pytest.approx(0.9)
    assert after(10_000, "fast") == pytest.approx(0.9 * MIN_STABILITY_SHARE, abs=0.026)


def test_decay_is_not_compounded() -> None:
    memory = apply_decay(item(), START + timedelta(days=40))
    assert decayed_stability(memory, START + timedelta(days=40, hours=5)) is None
    assert apply_decay(memory, START + timedelta(days=90)) == apply_decay(item(), START + timedelta(days=90))


def test_turn_does_not_decay() -> None:
    assert decayed_stability(made("Tea."), START + timedelta(days=400)) is None
