"""Settings of built-in steps. A value that is None is the deployment's setting."""

from typing import Annotated

from pydantic import BaseModel, Field

from schemas.messages.assemble import MAX_BUDGET_TOKENS, MIN_BUDGET_TOKENS

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
