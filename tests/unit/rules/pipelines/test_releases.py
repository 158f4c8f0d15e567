"""A stored topology of another release."""

from agents.rules.pipelines.built_in import DEFAULT_TOPOLOGY
from agents.rules.pipelines.releases import in_this_release
from schemas.state.pipelines import PlacedStep

OWN = PlacedStep(step_id="retrieve.words", implementation="acme.Words")


def test_topology_of_this_release_stays() -> None:
    assert in_this_release(DEFAULT_TOPOLOGY) == DEFAULT_TOPOLOGY


def test_step_that_a_later_release_has_is_added_in_its_place() -> None:
    receive, recall, *rest = DEFAULT_TOPOLOGY.retrieve
    stored = DEFAULT_TOPOLOGY.with_steps("retrieve", [receive, OWN, *rest])
    assert in_this_release(stored).retrieve == (receive, OWN, recall, *rest)


def test_built_in_step_that_is_gone_is_left_out_and_settings_stay() -> None:
    gone = PlacedStep(step_id="retrieve.earlier")
    receive, *rest = DEFAULT_TOPOLOGY.retrieve
    set_up = rest[-2].model_copy(update={"config": {"candidates": 9}})
    stored = DEFAULT_TOPOLOGY.with_steps("retrieve", [receive, gone, *rest[:-2], set_up, rest[-1]])
    assert in_this_release(stored).retrieve == (receive, *rest[:-2], set_up, rest[-1])


def test_step_that_a_later_release_has_switched_off_is_off_and_own_steps_keep_their_place() -> None:
    select, refresh, *rest = DEFAULT_TOPOLOGY.evolve
    assert (refresh.step_id, refresh.enabled) == ("evolve.refresh_items", False)
    own = PlacedStep(step_id="evolve.days", implementation="acme.Days")
    stored = DEFAULT_TOPOLOGY.with_steps("evolve", [select, own, *rest])
    assert in_this_release(stored).evolve == (select, own, refresh, *rest)
    on = refresh.model_copy(update={"enabled": True})
    stored = DEFAULT_TOPOLOGY.with_steps("evolve", [select, on, *rest])
    assert in_this_release(stored).evolve == (select, on, *rest)
