"""Every rule of editing and validation, by the classes that a deployment could have installed."""

import asyncio
from typing import Any

import pytest
from modestream_client.pipeline_edits import Edit
from pydantic import TypeAdapter

from agents.rules.pipelines.built_in import BUILT_IN, DEFAULT_TOPOLOGY, RerankConfig
from agents.rules.pipelines.validation import (
    Available,
    apply_edits,
    check_topology,
    contract_of,
    in_this_release,
    read_config,
)
from schemas.failures import Rejected
from schemas.state.pipelines import PlacedStep, Topology
from streams.adapters.installed_steps import PythonSteps

STEPS = "tests.builders.custom_steps"
INSTALLED = PythonSteps({"tests"})
AVAILABLE = Available(frozenset({"default", "fast"}), {"retrieve.rerank": frozenset({"rerank-1"})})
EDITS: TypeAdapter[list[Edit]] = TypeAdapter(list[Edit])


def insert(name: str, at: str, cls: str = "RedactCards", op: str = "insert_after", **more: Any) -> dict[str, Any]:
    return {"op": op, "at": at, "step_id": name, "implementation": f"{STEPS}.{cls}", **more}


def edited(*edits: dict[str, Any], topology: Topology = DEFAULT_TOPOLOGY, available: Available = AVAILABLE) -> Topology:
    changed = apply_edits(topology, EDITS.validate_python([*edits]))
    asyncio.run(INSTALLED.load(changed, 30))
    check_topology(changed, INSTALLED.contract, available)
    return changed


def names(topology: Topology, pipeline: str = "memorize") -> list[str]:
    return [step.step_id.split(".")[1] for step in topology.of(pipeline)]


def test_pipelines_of_the_release_are_valid() -> None:
    check_topology(DEFAULT_TOPOLOGY, INSTALLED.contract, Available())
    assert [step.step_id for step in DEFAULT_TOPOLOGY.steps()] == list(BUILT_IN)


def test_step_is_inserted_after_and_before() -> None:
    after = edited(insert("memorize.redact", "memorize.ingest"))
    assert names(after)[:3] == ["ingest", "redact", "extract_items"]
    before = edited(insert("memorize.redact", "memorize.extract_items", op="insert_before"))
    assert names(before) == names(after)


def test_custom_step_is_removed_and_a_replaced_one_gives_its_place_back() -> None:
    inserted = edited(insert("memorize.redact", "memorize.ingest"))
    assert edited({"op": "remove", "step_id": "memorize.redact"}, topology=inserted) == DEFAULT_TOPOLOGY
    replaced = edited({"op": "replace", "step_id": "retrieve.rerank", "implementation": f"{STEPS}.Reverse"})
    assert replaced.find("retrieve.rerank") != DEFAULT_TOPOLOGY.find("retrieve.rerank")
    assert edited({"op": "remove", "step_id": "retrieve.rerank"}, topology=replaced) == DEFAULT_TOPOLOGY


def test_built_in_step_is_switched_off_and_on() -> None:
    off = edited({"op": "remove", "step_id": "memorize.extract_items"})
    assert not off.find("memorize.extract_items").enabled  # type: ignore[union-attr]
    on = edited({"op": "config", "step_id": "memorize.extract_items", "enabled": True}, topology=off)
    assert on == DEFAULT_TOPOLOGY


def test_configuration_is_merged_and_a_null_restores_the_default() -> None:
    once = edited({"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 7, "profile": "fast"}})
    twice = edited({"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": None}}, topology=once)
    step = twice.find("retrieve.rerank")
    assert step is not None
    assert step.config == {"profile": "fast"}
    config = read_config(step, contract_of(step, INSTALLED.contract))
    assert config == RerankConfig(profile="fast")


REFUSED = {
    "unknown_step": [{"op": "config", "step_id": "retrieve.nothing"}],
    "duplicate_step": [insert("memorize.redact", "memorize.ingest"), insert("memorize.redact", "memorize.ingest")],
    "wrong_pipeline": [insert("retrieve.redact", "memorize.ingest")],
    "step_is_fixed": [{"op": "remove", "step_id": "memorize.index"}],
    "not_replaceable": [{"op": "replace", "step_id": "retrieve.rank", "implementation": f"{STEPS}.Reverse"}],
    "no_place": [insert("memorize.redact", "memorize.index")],
    "missing_requirement": [insert("memorize.topic", "memorize.ingest", "LongItemsOnly")],
    "undeclared_product": [insert("memorize.again", "memorize.extract_items", "WholeTextAsItem"),
                           insert("retrieve.again", "retrieve.rank", "Reverse"),
                           insert("retrieve.words", "retrieve.rank", "Synonyms")],
    "unknown_profile": [{"op": "config", "step_id": "retrieve.rerank", "config": {"profile": "absent"}}],
    "unknown_template": [{"op": "config", "step_id": "retrieve.rerank", "config": {"template": "rerank-99"}}],
    "capability_unavailable": [insert("retrieve.writes", "retrieve.rank", "Writes")],
    "unknown_class": [insert("memorize.redact", "memorize.ingest", "Missing")],
    "unlisted_package": [insert("memorize.redact", "memorize.ingest") | {"implementation": "json.JSONDecoder"}],
    "invalid_config": [{"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 1}}],
}  # fmt: skip


@pytest.mark.parametrize("rule", REFUSED)
def test_edit_that_breaks_a_rule_is_refused_by_its_name(rule: str) -> None:
    with pytest.raises(Rejected) as refused:
        edited(*REFUSED[rule])
    assert refused.value.code == "invalid_value"
    assert refused.value.message.startswith(f"rule {rule}: ")


@pytest.mark.parametrize(("cls", "reason"), [("NoContract", "no `role`"), ("missing.Module", "can't be imported")])
def test_class_without_a_contract_is_refused(cls: str, reason: str) -> None:
    with pytest.raises(Rejected, match=reason):
        edited(insert("memorize.redact", "memorize.ingest", cls))


def test_order_of_built_in_steps_is_that_of_the_consumers() -> None:
    turned = DEFAULT_TOPOLOGY.with_steps("evolve", DEFAULT_TOPOLOGY.evolve[::-1])
    with pytest.raises(Rejected, match="rule wrong_order"):
        check_topology(turned, INSTALLED.contract, AVAILABLE)


def test_custom_step_that_asks_a_model_needs_a_profile() -> None:
    topic = insert("memorize.topic", "memorize.understand", "WithTopic")
    assert names(edited(topic))[-1] == "topic"
    with pytest.raises(Rejected, match="rule capability_unavailable"):
        edited(topic, available=Available())


def test_own_configuration_is_checked_with_that_of_every_step() -> None:
    given = {"replacement": "#", "timeout_s": 0.5, "on_failure": "skip"}
    assert edited(insert("memorize.redact", "memorize.ingest", config=given))
    for wrong in ({"replacement": 1}, {"timeout_s": 0}, {"on_failure": "maybe"}, {"other": 1}):
        with pytest.raises(Rejected, match="rule invalid_config"):
            edited(insert("memorize.redact", "memorize.ingest", config=wrong))


def test_later_edit_of_a_command_sees_the_earlier_one() -> None:
    topology = edited(
        insert("memorize.redact", "memorize.ingest"),
        insert("memorize.again", "memorize.redact", op="insert_before"),
        {"op": "config", "step_id": "memorize.redact", "config": {"replacement": "#"}},
    )
    assert names(topology)[:3] == ["ingest", "again", "redact"]


def test_digest_tells_topologies_apart_and_nothing_else() -> None:
    first = edited(insert("memorize.redact", "memorize.ingest"))
    same = edited(insert("memorize.redact", "memorize.ingest"))
    second = edited(insert("memorize.redact", "memorize.ingest", config={"replacement": "#"}))
    assert first.digest == same.digest
    assert len({first.digest, second.digest, DEFAULT_TOPOLOGY.digest}) == 3


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


def test_step_that_a_later_release_has_switched_off_is_off_and_custom_steps_keep_their_place() -> None:
    refresh, select, *rest = DEFAULT_TOPOLOGY.evolve
    assert refresh.step_id == "evolve.refresh_items"
    assert refresh.enabled is False
    own = PlacedStep(step_id="evolve.days", implementation="acme.Days")
    stored = DEFAULT_TOPOLOGY.with_steps("evolve", [select, own, *rest])
    assert in_this_release(stored).evolve == (refresh, select, own, *rest)
    on = refresh.model_copy(update={"enabled": True})
    stored = DEFAULT_TOPOLOGY.with_steps("evolve", [select, on, *rest])
    assert in_this_release(stored).evolve == (on, select, *rest)


def test_custom_step_behind_one_that_opens_nothing_any_more_stays_behind_the_one_before() -> None:
    refresh, select, *rest = DEFAULT_TOPOLOGY.evolve
    own = PlacedStep(step_id="evolve.days", implementation="acme.Days")
    stored = DEFAULT_TOPOLOGY.with_steps("evolve", [select, refresh, own, *rest])
    assert in_this_release(stored).evolve == (refresh, select, own, *rest)
