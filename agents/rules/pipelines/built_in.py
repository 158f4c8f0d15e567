"""The built-in steps of the three pipelines, in the order in which they run. Pure.

Kafka is the runner: steps of one pipeline run in the consumers of several topics, and no step is a topic of its own.
"""

from collections.abc import Iterable, Mapping, Sequence

from agents.rules.pipelines.configs import (
    ContextConfig,
    ModelConfig,
    RefreshItemsConfig,
    RerankConfig,
    RouteConfig,
    SelectConfig,
)
from agents.rules.pipelines.contract import StepContract
from schemas.state.pipelines import PIPELINE_NAMES, PlacedStep, Topology


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
        "evolve.refresh_items",
        "understand",
        _names("turns"),
        _names("turns", "items"),
        MODEL | WRITES,
        config=RefreshItemsConfig,
        opens="turns",
        is_off=True,
    ),
    StepContract(
        "evolve.summarise", "consolidate", _names("turns"), _names("summaries"), MODEL | WRITES, config=ModelConfig
    ),
    StepContract("evolve.merge", "merge", _names("scope"), _names("items"), WRITES),
    StepContract(
        "evolve.recluster", "cluster", _names("scope"), _names("categories"), MODEL | WRITES, config=ModelConfig
    ),
    StepContract(
        "evolve.emit_diff",
        "report",
        _names("scope"),
        _names("diff"),
        WRITES,
        optional=_names("summaries", "items", "categories"),
        is_fixed=True,
    ),
)

BUILT_IN: Mapping[str, StepContract] = {one.step_id: one for one in (*MEMORIZE, *RETRIEVE, *EVOLVE)}
"""All of them by name."""


def _placed(contracts: Iterable[StepContract]) -> tuple[PlacedStep, ...]:
    return tuple(PlacedStep(step_id=one.step_id, enabled=not one.is_off) for one in contracts)


DEFAULT_TOPOLOGY = Topology(memorize=_placed(MEMORIZE), retrieve=_placed(RETRIEVE), evolve=_placed(EVOLVE))
"""The pipelines of the release: revision 0."""

assert tuple(Topology.model_fields) == PIPELINE_NAMES
