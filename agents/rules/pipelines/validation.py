"""Validate a topology before it counts, check what custom steps return, and show pipelines to commands. Pure.

Raises Rejected with the rule that is broken. What it accepts can be run by a worker with the same profiles, templates
and installed classes. A wrong product is a failure of its step: it reaches nothing that the step was not given, such as
a hit or a turn that it was not shown, a scope, an identity.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from modestream_client.pipeline_edits import ConfigureStep, Edit, InsertStep, ReplaceStep
from pydantic import BaseModel, ValidationError

from agents.rules.items.extracting import ExtractedItem
from agents.rules.pipelines.built_in import BUILT_IN, DEFAULT_TOPOLOGY, not_replaceable
from agents.rules.pipelines.contract import INITIAL_STATE, SEAMS, WRITING_PLACES, StepContract, refuse
from schemas.failures import Rejected
from schemas.messages.retrieval import MAX_QUERY_LENGTH
from schemas.messages.turns import Turn
from schemas.state.files import FileText
from schemas.state.memories import Memory
from schemas.state.pipelines import PIPELINE_NAMES, SHIPPED, PlacedStep, Revision, Topology
from schemas.state.understanding import Understanding

# Apply edits to a topology, and bring a stored one to this release. Pure.
#
# `agents.rules.pipelines.validation` decides whether the result is valid.


def apply_edits(topology: Topology, edits: Sequence[Edit]) -> Topology:
    """Return the topology after all edits, in their order. Raises Rejected with the rule that one breaks."""
    return reduce(_apply, edits, topology)


RELEASED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def shipped_revision() -> Revision:
    """Return revision 0: the pipelines of the release, as if no operator had ever changed them."""
    return Revision(
        number=SHIPPED,
        parent=None,
        hash=DEFAULT_TOPOLOGY.digest,
        created_at=RELEASED_AT,
        note="the pipelines of the release",
        topology=DEFAULT_TOPOLOGY,
    )


def in_this_release(topology: Topology) -> Topology:
    """Return a topology of another release with the built-in steps of this one, custom steps where they were."""
    for name in PIPELINE_NAMES:
        # The released steps, each as stored and followed by the custom steps that stood behind it.
        stored, released = topology.of(name), DEFAULT_TOPOLOGY.of(name)
        behind: dict[str, list[PlacedStep]] = {}
        anchor = released[0].step_id
        for step in stored:
            if (built_in := BUILT_IN.get(step.step_id)) is not None:
                # Behind a step that opens nothing no custom step runs in this release: it stays behind the one before.
                anchor = step.step_id if built_in.opens else anchor
            elif step.implementation is not None:
                behind.setdefault(anchor, []).append(step)
        stored_steps = {step.step_id: step for step in stored}
        steps: list[PlacedStep] = []
        for step in released:
            steps += [stored_steps.get(step.step_id, step), *behind.get(step.step_id, ())]
        topology = topology.with_steps(name, steps)
    return topology


ContractOf = Callable[[PlacedStep], StepContract]
"""The contract of a step of the deployment. Raises Rejected `unknown_class`."""


@dataclass(frozen=True, slots=True)
class Available:
    """The deployment's language model profiles, and the versions of prompts by step."""

    profiles: frozenset[str] = frozenset()
    templates: Mapping[str, frozenset[str]] | None = None


def check_topology(topology: Topology, custom_contract: ContractOf, available: Available) -> None:
    """Raise Rejected unless the topology is valid."""
    for pipeline in PIPELINE_NAMES:
        steps = topology.of(pipeline)
        expected = [name for name, contract in BUILT_IN.items() if contract.pipeline == pipeline]
        if [step.step_id for step in steps if step.step_id in BUILT_IN] != expected:
            raise refuse("wrong_order", f"the built-in steps of {pipeline} are {', '.join(expected)}, in this order")
        names = [step.step_id for step in steps]
        for step in steps:
            if names.count(step.step_id) > 1:
                raise refuse("duplicate_step", f"{step.step_id} is there twice")
            if step.pipeline != pipeline:
                raise refuse("wrong_pipeline", f"{step.step_id} is no step of {pipeline}")
            if step.step_id not in BUILT_IN and step.implementation is None:
                raise refuse("unknown_step", f"{step.step_id} is no built-in step and has no class")
        _check_flow(pipeline, steps, custom_contract)
        for step in steps:
            _check_config(step, contract_of(step, custom_contract), available)


def contract_of(step: PlacedStep, custom_contract: ContractOf) -> StepContract:
    """Return the contract of a step: a built-in one, or that of its class."""
    return BUILT_IN[step.step_id] if step.implementation is None else custom_contract(step)


def _check_flow(pipeline: str, steps: Sequence[PlacedStep], custom_contract: ContractOf) -> None:
    """Each step has what it requires from the steps before it, and custom steps stand where one can run."""
    state = INITIAL_STATE[pipeline]
    seam: str | None = None
    for step in steps:
        built_in = BUILT_IN.get(step.step_id)
        if built_in is not None:
            seam = built_in.opens
        if step.implementation is not None:
            _check_custom(step, contract_of(step, custom_contract), built_in, seam)
        elif built_in is not None and built_in.is_fixed and not step.enabled:
            raise refuse("step_is_fixed", f"{step.step_id} can't be switched off: {built_in.promise}")
        if not step.enabled:
            continue
        contract = contract_of(step, custom_contract)
        if missing := contract.requires - state:
            raise refuse(
                "missing_requirement",
                f"{step.step_id} requires {', '.join(sorted(missing))}, which no enabled step before it produces",
            )
        state |= contract.produces


def _check_custom(step: PlacedStep, contract: StepContract, replaced: StepContract | None, seam: str | None) -> None:
    if replaced is not None and not replaced.is_replaceable:
        raise not_replaceable(replaced)
    if seam is None:
        anchors = ", ".join(
            name for name, contract in BUILT_IN.items() if contract.pipeline == step.pipeline and contract.opens
        )
        raise refuse("no_place", f"no custom step can run there; insert it after one of {anchors}")
    if unknown := contract.requires - SEAMS[seam]:
        has = ", ".join(sorted(SEAMS[seam]))
        raise refuse(
            "missing_requirement",
            f"{step.step_id} requires {', '.join(sorted(unknown))}; at this place a step can have {has}",
        )
    if contract.produces != {seam}:
        raise refuse("undeclared_product", f"a step at this place produces {seam}, and says so in `produces`")
    if "writes" in contract.capabilities and seam not in WRITING_PLACES:
        raise refuse("capability_unavailable", f"{step.step_id} can't write there: a question changes nothing")


def _check_config(step: PlacedStep, contract: StepContract, available: Available) -> None:
    config = read_config(step, contract)
    asks_model = step.implementation is not None and "language_model" in contract.capabilities
    by_default = next((name for name in ("by_default", "by_model") if getattr(config, name, None)), None)
    if step.enabled and not available.profiles and (asks_model or by_default):
        asked = f"{step.step_id} with {by_default}" if by_default else step.step_id
        raise refuse("capability_unavailable", f"{asked} needs a language model; set LLM_PROFILES")
    profile, template = getattr(config, "profile", None), getattr(config, "template", None)
    if profile is not None and profile not in available.profiles:
        profiles = ", ".join(sorted(available.profiles)) or "none"
        raise refuse("unknown_profile", f"no language model profile {profile!r}; there are: {profiles}")
    known_templates = (available.templates or {}).get(step.step_id)
    if template is not None and known_templates is not None and template not in known_templates:
        raise refuse(
            "unknown_template",
            f"no template {template!r} for {step.step_id}; there are: {', '.join(sorted(known_templates))}",
        )


def read_config(step: PlacedStep, contract: StepContract) -> BaseModel:
    """Return the configuration of a step. Raises Rejected `invalid_config` with the reason."""
    try:
        return contract.config.model_validate(step.config)
    except ValidationError as problem:
        first = problem.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "config"
        raise refuse("invalid_config", f"{step.step_id}: {where}: {first['msg']}") from None


MAX_OWN_ITEMS = 1000
"""Items of one turn that a custom step may return; the rules find some hundred in the longest text."""

MAX_OWN_TEXT_CHARS = 2_000_000
"""Characters of a file that a custom step may return: as many as are read of one."""

TURN_IDENTITY = ("scope", "conversation_id", "turn_id", "role", "occurred_at", "mode")
"""The fields of a turn that a custom step leaves as they are."""


class WrongProduct(ValueError):
    """A step returned a value that it may not; the message names it."""


Check = Callable[[Mapping[str, Any], Any], Any]
"""Takes the state before and the step's return value; returns the accepted value. Raises WrongProduct."""


def product_of(returned: object, produces: str, before: Mapping[str, Any]) -> Any:
    """Return the accepted part of a custom step's return value. Raises WrongProduct."""
    if not isinstance(returned, Mapping) or set(returned) != {produces}:
        shown = sorted(map(str, returned)) if isinstance(returned, Mapping) else type(returned).__name__
        raise WrongProduct(f"it returned {shown} and not a mapping with exactly {produces!r}")
    return _CHECKS[produces](before, returned[produces])


def _turn(before: Mapping[str, Any], turn: Any) -> Turn:
    original: Turn = before["turn"]
    if not isinstance(turn, Turn):
        raise WrongProduct("`turn` is no Turn")
    changed = [name for name in TURN_IDENTITY if getattr(turn, name) != getattr(original, name)]
    if changed:
        raise WrongProduct(f"it changed {', '.join(changed)} of the turn")
    # Its class is the deployment's own: all limits of a published turn hold.
    return type(original).model_validate(turn.model_dump(), strict=False)


def _items(before: Mapping[str, Any], items: Any) -> list[ExtractedItem]:
    memory: Memory = before["memory"]
    texts = {None: memory.text} | {resource.uri: resource.text or "" for resource in memory.resources}
    products = list(items)
    if len(products) > MAX_OWN_ITEMS:
        raise WrongProduct(f"{len(products)} items, at most {MAX_OWN_ITEMS}")
    for item in products:
        if not isinstance(item, ExtractedItem) or not item.text:
            raise WrongProduct("`items` are ExtractedItem with a text")
        if not 0 <= item.start < item.end <= len(texts.get(item.resource, "")):
            raise WrongProduct(f"the span {item.start} to {item.end} is not within its text")
    return products


def _file_text(_before: Mapping[str, Any], product: Any) -> FileText:
    if not isinstance(product, FileText) or len(product.text) > MAX_OWN_TEXT_CHARS:
        raise WrongProduct(f"`file_text` is a FileText of at most {MAX_OWN_TEXT_CHARS} characters")
    ends = [0, *(place for segment in product.segments for place in (segment.start, segment.end)), len(product.text)]
    if ends != sorted(ends):
        raise WrongProduct("the segments of `file_text` are within its text, in order, and do not overlap")
    return product


def _understanding(_before: Mapping[str, Any], product: Any) -> Understanding | None:
    if product is not None and not isinstance(product, Understanding):
        raise WrongProduct("`understanding` is an Understanding or None")
    return product


def _query(_before: Mapping[str, Any], query: Any) -> str:
    if not isinstance(query, str) or not 1 <= len(query) <= MAX_QUERY_LENGTH:
        raise WrongProduct(f"`query` is a string of 1 to {MAX_QUERY_LENGTH} characters")
    return query


def _some_of(name: str) -> Check:
    """Return the check of a list of memories that may be narrowed and reordered."""

    def check(before: Mapping[str, Any], memories: Any) -> list[Any]:
        returned, shown_ids = list(memories), {memory.memory_id for memory in before[name]}
        ids = [getattr(memory, "memory_id", None) for memory in returned]
        if len(set(ids)) < len(ids) or not shown_ids.issuperset(ids):
            raise WrongProduct(f"`{name}` are some of those that it was given, each once")
        return returned

    return check


_CHECKS: Mapping[str, Check] = {
    "turn": _turn,
    "file_text": _file_text,
    "items": _items,
    "understanding": _understanding,
    "query": _query,
    "hits": _some_of("hits"),
    "turns": _some_of("turns"),
}


def build_pipeline_view(revision: Revision, custom_contract: Callable[[PlacedStep], StepContract]) -> dict[str, Any]:
    """Return a revision with all of its steps. A class that is not installed any more has no contract."""
    pipelines: dict[str, list[dict[str, Any]]] = {name: [] for name in PIPELINE_NAMES}
    for name in PIPELINE_NAMES:
        for step in revision.topology.of(name):
            shown: dict[str, Any] = {**step.model_dump(mode="json"), "built_in": step.implementation is None}
            try:
                contract = contract_of(step, custom_contract)
            except Rejected:
                pipelines[name].append({**shown, "installed": False})
                continue
            shown |= {
                "role": contract.role,
                "requires": sorted(contract.requires),
                "produces": sorted(contract.produces),
                "capabilities": sorted(contract.capabilities),
                "promise": contract.promise,
                "can_be_switched_off": not contract.is_fixed,
                "can_be_replaced": contract.is_replaceable or step.implementation is not None,
                "own_steps_may_follow": contract.opens,
                "settings": sorted(contract.config.model_fields),
            }
            pipelines[name].append(shown)
    return {**revision.summary(), "revision": revision.number, "pipelines": pipelines}


def _apply(topology: Topology, edit: Edit) -> Topology:
    if isinstance(edit, InsertStep):
        at = _known(topology, edit.at)
        if topology.find(edit.step_id) is not None or edit.step_id in BUILT_IN:
            raise refuse("duplicate_step", f"there is a step {edit.step_id!r} already; choose another name")
        inserted = PlacedStep(step_id=edit.step_id, implementation=edit.implementation, config=edit.config)
        if inserted.pipeline != at.pipeline:
            raise refuse("wrong_pipeline", f"a step beside {edit.at} is named {at.pipeline}.NAME, not {edit.step_id}")
        placed = list(topology.of(at.pipeline))
        position = placed.index(at) + (edit.op == "insert_after")
        return topology.with_steps(at.pipeline, [*placed[:position], inserted, *placed[position:]])
    step = _known(topology, edit.step_id)
    if isinstance(edit, ConfigureStep):
        config = {name: value for name, value in {**step.config, **edit.config}.items() if value is not None}
        enabled = step.enabled if edit.enabled is None else edit.enabled
        return _with(topology, step.model_copy(update={"config": config, "enabled": enabled}))
    if isinstance(edit, ReplaceStep):
        contract = BUILT_IN.get(step.step_id)
        if contract is not None and not contract.is_replaceable:
            raise not_replaceable(contract)
        return _with(topology, PlacedStep(step_id=step.step_id, implementation=edit.implementation, config=edit.config))
    if step.step_id not in BUILT_IN:
        steps = topology.of(step.pipeline)
        return topology.with_steps(step.pipeline, [other for other in steps if other.step_id != edit.step_id])
    if step.implementation is not None:
        return _with(topology, PlacedStep(step_id=step.step_id))
    return _with(topology, step.model_copy(update={"enabled": False}))


def _known(topology: Topology, step_id: str) -> PlacedStep:
    step = topology.find(step_id)
    if step is None:
        names = ", ".join(step.step_id for step in topology.steps())
        raise refuse("unknown_step", f"there is no step {step_id!r}; there are: {names}")
    return step


def _with(topology: Topology, changed: PlacedStep) -> Topology:
    steps = topology.of(changed.pipeline)
    return topology.with_steps(
        changed.pipeline, [changed if step.step_id == changed.step_id else step for step in steps]
    )
