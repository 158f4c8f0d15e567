"""The built-in steps of the three pipelines in their order, their settings, and the places of custom steps. Pure.

Kafka is the runner: steps of one pipeline run in the consumers of several topics, and no step is a topic of its own. A
setting that is None is the deployment's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from agents.rules.pipelines.contract import REJECTING_PLACES, StepContract
from schemas.messages.assemble import MAX_BUDGET_TOKENS, MIN_BUDGET_TOKENS
from schemas.state.pipelines import PIPELINE_NAMES, PlacedStep, Topology

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _StepConfig(BaseModel, extra="forbid", strict=True, frozen=True):
    """Unknown settings are refused."""


class ModelConfig(_StepConfig):
    """A step that asks a language model: the profile, and the version of the prompt's template."""

    profile: str | None = Field(default=None, max_length=128)
    template: str | None = Field(default=None, max_length=128)


class RerankConfig(ModelConfig):
    """`retrieve.rerank`: whether requests that do not say so are reranked, hits shown, and the time limit."""

    by_default: bool | None = None
    candidates: Annotated[int, Field(ge=2, le=100)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=60)] | None = None


class RouteConfig(ModelConfig):
    """`retrieve.route`: whether a model judges the layers of requests that do not say so, and its time limit."""

    by_model: bool | None = None
    timeout_s: Annotated[float, Field(gt=0, le=60)] | None = None


class ContextConfig(_StepConfig):
    """`retrieve.build_context`: the floors of evidence, and the largest budget."""

    min_score: Share | None = None
    min_best_score: Share | None = None
    max_tokens: Annotated[int, Field(ge=MIN_BUDGET_TOKENS, le=MAX_BUDGET_TOKENS)] | None = None


class SelectConfig(_StepConfig):
    """`evolve.select`: the limits of a run."""

    seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None


class RefreshItemsConfig(_StepConfig):
    """`evolve.refresh_items`: what one run may cost to understand turns again."""

    calls: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


MODEL = _names("language_model")
WRITES = _names("writes")

MEMORIZE: Sequence[StepContract] = (
    StepContract("memorize.ingest", "ingest", _names("record"), _names("turn", "memory"), opens="turn", is_fixed=True),
    StepContract(
        "memorize.extract_items", "extract", _names("memory"), _names("items"), opens="items", is_replaceable=True
    ),
    StepContract(
        "memorize.merge_items",
        "merge",
        _names("memory"),
        _names("stored"),
        WRITES,
        optional=_names("items"),
        is_fixed=True,
    ),
    StepContract("memorize.intend", "route", _names("stored"), _names("intention"), WRITES),
    StepContract(
        "memorize.index", "index", _names("stored"), _names("vector"), _names("vector_search", "writes"), is_fixed=True
    ),
    StepContract(
        "memorize.categorize", "cluster", _names("stored", "vector"), _names("categories"), _names("vector_search")
    ),
    StepContract(
        "memorize.understand",
        "understand",
        _names("memory", "stored"),
        _names("understanding"),
        MODEL,
        config=ModelConfig,
        opens="understanding",
    ),
)

RETRIEVE: Sequence[StepContract] = (
    StepContract("retrieve.receive", "ingest", _names("record"), _names("query"), opens="query", is_fixed=True),
    StepContract(
        "retrieve.recall", "recall", _names("query"), _names("candidates"), _names("vector_search"), is_fixed=True
    ),
    StepContract("retrieve.route", "route", _names("query"), _names("layers"), config=RouteConfig),
    StepContract(
        "retrieve.rank",
        "rank",
        _names("query", "candidates"),
        _names("hits"),
        optional=_names("layers"),
        opens="hits",
        is_fixed=True,
    ),
    StepContract(
        "retrieve.rerank",
        "retrieve",
        _names("query", "hits"),
        _names("hits"),
        MODEL,
        config=RerankConfig,
        opens="hits",
        is_replaceable=True,
    ),
    StepContract(
        "retrieve.build_context",
        "context",
        _names("query", "hits"),
        _names("context"),
        config=ContextConfig,
        is_fixed=True,
    ),
)

EVOLVE: Sequence[StepContract] = (
    StepContract(
        "evolve.refresh_items",
        "understand",
        _names("scope"),
        _names("items"),
        MODEL | WRITES,
        config=RefreshItemsConfig,
        is_off=True,
    ),
    StepContract(
        "evolve.select",
        "select",
        _names("scope"),
        _names("turns"),
        WRITES,
        config=SelectConfig,
        opens="turns",
        is_fixed=True,
    ),
    StepContract(
        "evolve.summarise", "consolidate", _names("turns"), _names("summaries"), MODEL | WRITES, config=ModelConfig
    ),
    StepContract("evolve.merge", "merge", _names("scope"), _names("items"), WRITES),
    StepContract(
        "evolve.recluster", "cluster", _names("scope"), _names("categories"), MODEL | WRITES, config=ModelConfig
    ),
    StepContract(
        "evolve.adjust_intention",
        "consolidate",
        _names("scope"),
        _names("intention"),
        MODEL | WRITES,
        config=ModelConfig,
    ),
    StepContract(
        "evolve.emit_diff",
        "report",
        _names("scope"),
        _names("diff"),
        WRITES,
        optional=_names("summaries", "items", "categories", "intention"),
        is_fixed=True,
    ),
)

BUILT_IN: Mapping[str, StepContract] = {contract.step_id: contract for contract in (*MEMORIZE, *RETRIEVE, *EVOLVE)}
"""All of them by name."""


def _placed(contracts: Iterable[StepContract]) -> tuple[PlacedStep, ...]:
    return tuple(PlacedStep(step_id=contract.step_id, enabled=not contract.is_off) for contract in contracts)


DEFAULT_TOPOLOGY = Topology(memorize=_placed(MEMORIZE), retrieve=_placed(RETRIEVE), evolve=_placed(EVOLVE))
"""The pipelines of the release: revision 0."""

assert tuple(Topology.model_fields) == PIPELINE_NAMES


def custom_steps(topology: Topology) -> Iterator[tuple[str, PlacedStep]]:
    """Yield the enabled custom steps in their order, each with the built-in step behind or instead of which it runs."""
    anchor = ""
    for step in topology.steps():
        anchor = step.step_id if step.step_id in BUILT_IN else anchor
        if step.implementation is not None and step.enabled:
            yield anchor, step


def steps_not_to_skip(topology: Topology) -> Iterator[tuple[str, PlacedStep]]:
    """Yield the custom steps, with their places, whose failure rejects the turn or the request."""
    for place, step in custom_steps(topology):
        default = "reject" if BUILT_IN[place].opens in REJECTING_PLACES else "skip"
        if (step.config.get("on_failure") or default) == "reject":
            yield place, step


def has_custom_at(topology: Topology, place: str) -> bool:
    """True if custom steps run there."""
    return any(opened == place for opened, _ in custom_steps(topology))
