"""The configurable steps of the pipelines: a revision's settings, or else the deployment's."""

from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from agents.consolidation.consolidate import ClusterLimits, RunLimits
from agents.context.answer import ANSWER_STEP
from agents.context.assemble import ContextLimits
from agents.ports.models import CrossEncoder, LanguageModel
from agents.ports.pipelines import ActivePipelines
from agents.retrieval.hits import RankLimits
from agents.retrieval.retrieve import JudgeLayers, LocalRerank, Rerank
from agents.rules.categories.assignment import FilingLimits
from agents.rules.pipelines.built_in import (
    CategorizeConfig,
    ContextConfig,
    MergeConfig,
    ModelConfig,
    RankConfig,
    RecallConfig,
    RefreshItemsConfig,
    RerankConfig,
    RouteConfig,
    SelectConfig,
    SummariseConfig,
)
from agents.rules.pipelines.validation import Available
from agents.rules.prompts.prompting import Template
from agents.understanding.refresh import RefreshLimits
from agents.understanding.understand import UNDERSTAND_ROLE, UNDERSTAND_STEP
from agents.understanding.word_questions import WORDING_STEP
from schemas.models.language import Profiles
from streams.adapters.installed_steps import PythonSteps
from streams.bootstrap.prompts import open_prompts
from streams.flow.pipelines.comparing import PipelineHistory
from streams.flow.pipelines.in_force import Pipelines
from streams.flow.runs.recorder import TimedModels
from streams.settings import Settings

Config = TypeVar("Config", bound=BaseModel)

STEP_PROMPTS = {
    "memorize.understand": "understand",
    "retrieve.rerank": "rerank",
    "retrieve.route": "suffice",
    "evolve.summarise": "distil",
    "evolve.recluster": "categorize",
    "evolve.adjust_intention": "adjust",
}


class ConfiguredSteps:
    """Reads the settings of steps, one revision at a time."""

    def __init__(self, settings: Settings, language: LanguageModel) -> None:
        """Read the prompt templates. Ends the process if one can't be used."""
        self._settings = settings
        self._language = language
        self._prompts = open_prompts(settings)

    def pipelines(self, history: PipelineHistory) -> Pipelines:
        """Return the pipelines of the worker, not yet started, over its settings."""
        profiles = frozenset(name for name, _ in self._settings.llm_profiles.items())
        templates = {step: frozenset(self._prompts.versions(name)) for step, name in STEP_PROMPTS.items()}
        return Pipelines(
            history,
            PythonSteps(self._settings.pipeline_packages),
            available=Available(profiles, templates),
            model_of=partial(TimedModels, self._language),
        )

    def asks_model(self, active: ActivePipelines) -> bool:
        """True if a language model is asked about every turn, or will be when the latest revision can run."""
        asked = len(self._settings.llm_profiles) > 0 and active.is_on("memorize.understand")
        return asked or active.awaits("memorize.understand")

    def understanding_profile(self, active: ActivePipelines) -> str | None:
        config = _config(active, "memorize.understand", ModelConfig)
        return config.profile or self._settings.llm_profiles.profile_for(UNDERSTAND_STEP, UNDERSTAND_ROLE)

    def model(self, active: ActivePipelines, step: str) -> tuple[LanguageModel, Template]:
        config = _config(active, step, ModelConfig)
        return TimedModels(self._language, step, config.profile), self._template(config, step)

    def rank_limits(self, active: ActivePipelines) -> RankLimits:
        recall, rank = _config(active, "retrieve.recall", RecallConfig), _config(active, "retrieve.rank", RankConfig)
        given = {**recall.model_dump(exclude_none=True), **rank.model_dump(exclude_none=True)}
        return RankLimits(**given)

    def filing_limits(self, active: ActivePipelines) -> FilingLimits:
        return FilingLimits(**_config(active, "memorize.categorize", CategorizeConfig).model_dump(exclude_none=True))

    def cluster_limits(self, active: ActivePipelines) -> ClusterLimits:
        config = _config(active, "evolve.summarise", SummariseConfig)
        return ClusterLimits(**config.model_dump(exclude_none=True, exclude={"profile", "template"}))

    def merging(self, active: ActivePipelines) -> MergeConfig:
        return _config(active, "evolve.merge", MergeConfig)

    def answering(self) -> tuple[LanguageModel, Profiles, Template]:
        """Return the language models that answer questions, their profiles, and the template of the prompt."""
        return TimedModels(self._language, ANSWER_STEP), self._settings.llm_profiles, self._prompts.of("answer")

    def wording(self) -> tuple[LanguageModel, Template]:
        """Return the language models that word questions of an evaluation, and the template of the prompt."""
        return TimedModels(self._language, WORDING_STEP), self._prompts.of("word")

    def rerank(self, active: ActivePipelines) -> Rerank:
        chosen, config = self._settings, _config(active, "retrieve.rerank", RerankConfig)
        return Rerank(
            TimedModels(self._language, "retrieve.rerank", config.profile),
            self._template(config, "retrieve.rerank"),
            config.candidates or chosen.rerank_candidates,
            config.timeout_s or chosen.rerank_timeout_s,
            by_default=chosen.rerank if config.by_default is None else config.by_default,
        )

    def local_rerank(self, active: ActivePipelines, cross_encoder: CrossEncoder) -> LocalRerank:
        timeout_s = _config(active, "retrieve.rerank", RerankConfig).timeout_s or self._settings.rerank_timeout_s
        return LocalRerank(cross_encoder, timeout_s)

    def judge_layers(self, active: ActivePipelines) -> JudgeLayers:
        chosen, config = self._settings, _config(active, "retrieve.route", RouteConfig)
        return JudgeLayers(
            TimedModels(self._language, "retrieve.route", config.profile),
            self._template(config, "retrieve.route"),
            config.timeout_s or chosen.sufficiency_timeout_s,
            by_default=chosen.sufficiency == "model" if config.by_model is None else config.by_model,
        )

    def context_limits(self, active: ActivePipelines) -> ContextLimits:
        chosen, config = self._settings, _config(active, "retrieve.build_context", ContextConfig)
        return ContextLimits(
            chosen.context_min_score if config.min_score is None else config.min_score,
            chosen.context_min_best_score if config.min_best_score is None else config.min_best_score,
            config.max_tokens or chosen.context_max_tokens,
        )

    def run_limits(self, active: ActivePipelines) -> RunLimits:
        chosen, config = self._settings, _config(active, "evolve.select", SelectConfig)
        return RunLimits(
            config.seconds or chosen.consolidation_seconds,
            chosen.consolidation_tokens if config.tokens is None else config.tokens,
        )

    def refresh_limits(self, active: ActivePipelines) -> RefreshLimits:
        chosen, config = self._settings, _config(active, "evolve.refresh_items", RefreshItemsConfig)
        return RefreshLimits(config.calls or chosen.refresh_calls, config.tokens or chosen.refresh_tokens)

    def _template(self, config: ModelConfig, step: str) -> Template:
        """Return the template chosen by the pipelines, else by the deployment, else by the project."""
        name = STEP_PROMPTS[step]
        return self._prompts.of(name) if config.template is None else self._prompts.get(config.template, name)


def _config(active: ActivePipelines, step: str, kind: type[Config]) -> Config:
    """Return the settings of a built-in step; the defaults where a class of the deployment is in its place."""
    config = active.config(step)
    return config if isinstance(config, kind) else kind()
