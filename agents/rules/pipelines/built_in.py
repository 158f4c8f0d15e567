"""The built-in steps of the three pipelines in their order, their settings, and the places of custom steps. Pure.

Kafka is the runner: steps of one pipeline run in the consumers of several topics, and no step is a topic of its own. A
setting that is None is the deployment's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from agents.rules.pipelines.contract import REJECTING_PLACES, StepContract, refuse
from schemas.failures import Rejected
from schemas.messages.assemble import MAX_BUDGET_TOKENS, MIN_BUDGET_TOKENS
from schemas.state.pipelines import PIPELINE_NAMES, PlacedStep, Topology

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _StepConfig(BaseModel, extra="forbid", strict=True, frozen=True):
    """Unknown settings are refused."""


class ModelConfig(_StepConfig):
    """A step that asks a language model: the profile, and the version of the prompt's template."""

    profile: str | None = Field(default=None, max_length=128)
    template: str | None = Field(default=None, max_length=128)


class ExtractConfig(_StepConfig):
    """`memorize.extract_items`: which items of those that are found are kept, and how many of a turn."""

    min_confidence: Share | None = None
    max_items: Annotated[int, Field(ge=1, le=1000)] | None = None


class CategorizeConfig(_StepConfig):
    """`memorize.categorize`: the confidence from which an item is in a category, and in how many it can be.

    Items that are filed again by a consolidation, or as a category is declared, are filed likewise.
    """

    min_confidence: Share | None = None
    max_categories: Annotated[int, Field(ge=1, le=20)] | None = None


class RecallConfig(_StepConfig):
    """`retrieve.recall`: the nearest vectors that are read, and the similarity below which a vector counts for nothing.

    A memory with a word of the question is a candidate in any case.
    """

    top_k: Annotated[int, Field(ge=10, le=1000)] | None = None
    min_similarity: Share | None = None


class RankConfig(_StepConfig):
    """`retrieve.rank`: the candidates that are ranked by all features, and the score below which nothing is a hit."""

    candidates: Annotated[int, Field(ge=10, le=1000)] | None = None
    min_score: Share | None = None


class SummariseConfig(ModelConfig):
    """`evolve.summarise`: the turns from which a summary is made, and how similar they are: 1 for the same words."""

    min_turns: Annotated[int, Field(ge=3, le=100)] | None = None
    min_similarity: Share | None = None


class MergeConfig(_StepConfig):
    """`evolve.merge`: the share of words from which two items are one (1: all), and whether unused items fade."""

    similarity: Annotated[float, Field(ge=0.5, le=1, allow_inf_nan=False)] | None = None
    decay: bool | None = None


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
    StepContract(
        "memorize.ingest", "ingest", _names("record"), _names("turn", "memory"), opens="turn", is_fixed=True,
        promise="that a turn is known again, and edited in its place, rests on the ids it gives",
    ),
    StepContract(
        "memorize.extract_items", "extract", _names("memory"), _names("items"),
        config=ExtractConfig, opens="items", is_replaceable=True,
    ),
    StepContract(
        "memorize.merge_items", "merge", _names("memory"), _names("stored"), WRITES,
        optional=_names("items"), is_fixed=True,
        promise="a turn is acknowledged when it is stored, with its words and items in one commit",
    ),
    StepContract(
        "memorize.read_files", "preprocess", _names("memory", "stored", "file"), _names("file_text"),
        opens="file_text", is_replaceable=True,
    ),
    StepContract(
        "memorize.intend", "route", _names("stored"), _names("intention"), WRITES,
        promise="an entry goes with the memory that it derives from",
    ),
    StepContract(
        "memorize.index", "index", _names("stored"), _names("vector"), _names("vector_search", "writes"),
        is_fixed=True,
        promise="each memory has one vector, of its current text, which is removed with it",
    ),
    StepContract(
        "memorize.categorize", "cluster", _names("stored", "vector"), _names("categories"), _names("vector_search"),
        config=CategorizeConfig,
        promise="items are filed by one measure, when they are new and when they are filed again",
    ),
    StepContract(
        "memorize.understand", "understand", _names("memory", "stored"), _names("understanding"), MODEL,
        config=ModelConfig, opens="understanding",
        promise="a turn waits for its model through outages and restarts, and no private one is shown to it",
    ),
)  # fmt: skip

RETRIEVE: Sequence[StepContract] = (
    StepContract(
        "retrieve.receive", "ingest", _names("record"), _names("query"), opens="query", is_fixed=True,
        promise="a question is answered after its caller's own writes, within what its sender may read",
    ),
    StepContract(
        "retrieve.recall", "recall", _names("query"), _names("candidates"), _names("vector_search"),
        config=RecallConfig, is_fixed=True,
        promise="no search leaves its user and scope, and none finds what is forgotten",
    ),
    StepContract(
        "retrieve.route", "route", _names("query"), _names("layers"), config=RouteConfig,
        promise="a layer shows only what existing memories say",
    ),
    StepContract(
        "retrieve.rank", "rank", _names("query", "candidates"), _names("hits"),
        optional=_names("layers"), config=RankConfig, opens="hits", is_fixed=True,
        promise="the same question over the same memories has the same answer, and scores can be compared",
    ),
    StepContract(
        "retrieve.rerank", "retrieve", _names("query", "hits"), _names("hits"), MODEL,
        config=RerankConfig, opens="hits", is_replaceable=True,
    ),
    StepContract(
        "retrieve.build_context", "context", _names("query", "hits"), _names("context"),
        config=ContextConfig, is_fixed=True,
        promise="a context never exceeds its budget, and names every memory in it",
    ),
)  # fmt: skip

EVOLVE: Sequence[StepContract] = (
    StepContract(
        "evolve.refresh_items", "understand", _names("scope"), _names("items"), MODEL | WRITES,
        config=RefreshItemsConfig, is_off=True,
        promise="what a run understands again is noted on the turns, so that an interrupted one goes on",
    ),
    StepContract(
        "evolve.select", "select", _names("scope"), _names("turns"), WRITES,
        config=SelectConfig, opens="turns", is_fixed=True,
        promise="a run that is delivered again takes the same turns, within its limits",
    ),
    StepContract(
        "evolve.summarise", "consolidate", _names("turns"), _names("summaries"), MODEL | WRITES,
        config=SummariseConfig,
        promise="a summary names each turn that it stands for, and goes when these are forgotten",
    ),
    StepContract(
        "evolve.merge", "merge", _names("scope"), _names("items"), WRITES, config=MergeConfig,
        promise="what is merged keeps its evidence, and is not made again",
    ),
    StepContract(
        "evolve.recluster", "cluster", _names("scope"), _names("categories"), MODEL | WRITES,
        config=ModelConfig,
        promise="items are filed by one measure, when they are new and when they are filed again",
    ),
    StepContract(
        "evolve.adjust_intention", "consolidate", _names("scope"), _names("intention"), MODEL | WRITES,
        config=ModelConfig,
        promise="an entry goes with the memory that it derives from",
    ),
    StepContract(
        "evolve.emit_diff", "report", _names("scope"), _names("diff"), WRITES,
        optional=_names("summaries", "items", "categories", "intention"), is_fixed=True,
        promise="a run is answered once, with all that it has changed",
    ),
)  # fmt: skip

BUILT_IN: Mapping[str, StepContract] = {contract.step_id: contract for contract in (*MEMORIZE, *RETRIEVE, *EVOLVE)}


def _placed(contracts: Iterable[StepContract]) -> tuple[PlacedStep, ...]:
    return tuple(PlacedStep(step_id=contract.step_id, enabled=not contract.is_off) for contract in contracts)


def not_replaceable(contract: StepContract) -> Rejected:
    """Return the refusal of a class in the place of a step, with the promise that depends on the step."""
    replaceable = ", ".join(name for name, other in BUILT_IN.items() if other.is_replaceable)
    message = f"no class can take the place of {contract.step_id}: {contract.promise}; replaceable are {replaceable}"
    return refuse("not_replaceable", message)


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
    return any(opened == place for opened, _ in custom_steps(topology))
