"""Settings: environment variables with the prefix `MODESTREAM_`, or the same names in a `.env` file."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from schemas.categories import NamedCategories
from schemas.embedders import ConfiguredEmbedder
from schemas.language import Profiles
from schemas.modes import GENERAL
from schemas.scopes import Scope
from streams.scope_path import DeployedScope


class Settings(BaseSettings):
    """Everything that a deployment may choose. Each field is read from `MODESTREAM_<NAME>`."""

    # A key that somebody wrote into a profile would else be printed with the error.
    model_config = SettingsConfigDict(
        env_prefix="MODESTREAM_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    broker: str = "kafka://127.0.0.1:9092"
    """Where Kafka is; several addresses are joined by `;`."""

    data_dir: Path = Path(".modestream")
    """Tables, lexical index, embedded vectors and models. All of it can be made again from Kafka."""

    topic_prefix: str = "memory."
    """What the names of all topics begin with; two deployments on one Kafka have two prefixes."""

    partitions: int = Field(default=4, ge=1)
    """Partitions of every topic. It decides where a user's memories are, so it can't be changed later."""

    replication_factor: int = Field(default=1, ge=1)
    """Copies that Kafka keeps of every topic: 3 in production."""

    qdrant_url: str | None = None
    """A Qdrant server; none: vectors are kept in the data directory, by this worker alone."""

    qdrant_api_key: str | None = None
    """The key of that server."""

    embedders: dict[str, ConfiguredEmbedder] = Field(default_factory=dict)
    """Embedders beside the presets, by the name that modes give: JSON, see the README."""

    categories: NamedCategories = NamedCategories()
    """Categories that every scope has, descriptions by name: JSON, see the README."""

    llm_profiles: Profiles = Profiles()
    """Language models by profile name, `default` among them: JSON, see the README. None: rules decide."""

    llm_concurrency: int = Field(default=8, ge=1)
    """Turns that language models read at the same time; each profile has its own bound beside this."""

    llm_backlog_per_second: float = Field(default=20.0, gt=0)
    """Turns a second that are read once a language model is back, beside those that come in."""

    embedding_precision: Literal["int8", "fp32"] = "int8"
    """Of the general model. fp32 is half as fast and finds no more (see README)."""

    embedding_threads: int = Field(default=0, ge=0)
    """How many texts are embedded at the same time; 0: as many as there are cores."""

    model_dir: Path | None = None
    """Where exported models are kept; none: `models` in the data directory."""

    ranking_weights: Path | None = None
    """A file of ranking weights; none: those that come with the project."""

    consolidation_seconds: float = Field(default=300.0, gt=0)
    """How long one consolidation may take; the rest is left for the next."""

    consolidate_every: float | None = Field(default=None, gt=0)
    """Hours between two consolidations of a scope in which something was said; none: only by trigger."""

    consolidation_tokens: int = Field(default=200_000, ge=0)
    """Tokens of language models that one consolidation may take."""

    scope_model: DeployedScope = Scope
    """Whose memories there are: the dotted path of a Pydantic model, see the README. It can't be changed later."""

    authorization: Path | None = None
    """A file that says which principals may do what, see the README; none: whoever can write to Kafka may."""

    selector_combinations: int = Field(default=1000, ge=1)
    """Scopes that one selector may stand for."""

    most_hits: int = Field(default=100, ge=1, le=100)
    """Hits of one answer at most."""

    worker_id: str | None = None
    """Tells workers apart, so that one that is started again gets its partitions back at once; none: from a file."""

    metrics_port: int = Field(default=0, ge=0, lt=65536)
    """The loopback port of `/metrics` and `/live`; 0: a free one, written to `run/metrics.port`."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Of the structured logs on standard error. The text of a memory is never logged at info or above."""

    @field_validator("embedders")
    @classmethod
    def _leave_general(cls, embedders: dict[str, ConfiguredEmbedder]) -> dict[str, ConfiguredEmbedder]:
        if GENERAL in embedders:
            raise ValueError(f"{GENERAL!r} is what every user's first mode is embedded by; give yours another name")
        return embedders

    @property
    def bootstrap_servers(self) -> list[str]:
        """The broker's addresses as Kafka clients take them."""
        return [address.removeprefix("kafka://") for address in self.broker.split(";")]

    @property
    def models(self) -> Path:
        """Where exported models are kept."""
        return self.model_dir or self.data_dir / "models"
