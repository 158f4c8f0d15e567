"""Settings: environment variables with the prefix `MODESTREAM_`, or the same names in a `.env` file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from modestream_client.kafka.security import KafkaSecurity, connection_options
from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from schemas.internal.job_history import Hours, MaintenanceTask
from schemas.internal.service import TopicPrefix, VectorIndexKind
from schemas.messages.assemble import DEFAULT_MIN_BEST_SCORE, DEFAULT_MIN_SCORE, MAX_BUDGET_TOKENS, MIN_BUDGET_TOKENS
from schemas.models.language import Profiles
from schemas.scope_models import load_scope
from schemas.scopes import Scope
from schemas.state.categories import NamedCategories
from schemas.state.files import DEFAULT_MAX_FILE_BYTES
from schemas.state.modes import GENERAL, ConfiguredEmbedder

DeployedScope = Annotated[type[Scope], BeforeValidator(load_scope)]
"""A scope model, set by its dotted path."""


KafkaConnection = Mapping[str, Any]
"""Arguments of aiokafka's clients: `bootstrap_servers`, and those of TLS and SASL."""

PackageName = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
"""The dotted name of a Python package or module."""

IsolationLevel = Literal["read_uncommitted", "read_committed"]
"""Kafka's isolation levels of a consumer."""


class Settings(BaseSettings):
    """The settings of a deployment. Each field is read from `MODESTREAM_<NAME>`."""

    # Errors would print the input, and a profile may hold a key.
    model_config = SettingsConfigDict(
        env_prefix="MODESTREAM_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    broker: str = "kafka://127.0.0.1:9092"
    """Kafka's address; several are separated by `;`."""

    kafka_security: KafkaSecurity | None = None
    """TLS and SASL towards Kafka: JSON, see `docs/configuration.md`; none: neither."""

    data_dir: Path = Path(".modestream")
    """Tables, lexical index, embedded vectors and models. All of it can be rebuilt from Kafka."""

    topic_prefix: TopicPrefix = "memory."
    """Prefix of all topic names; two deployments on one Kafka need two prefixes."""

    partitions: int = Field(default=4, ge=1)
    """Partitions of every topic. It determines the location of a user's memories, so it can't be changed later."""

    isolation_level: IsolationLevel = "read_uncommitted"
    """How records in Kafka transactions are read: `read_committed` skips aborted ones and waits for open ones, see
    `docs/configuration.md`."""

    replication_factor: int = Field(default=1, ge=1)
    """Replicas of every topic: 3 in production."""

    provision: Literal["create", "validate"] = "create"
    """`validate`: a worker creates and changes no topic, and ends where one is missing or has other settings."""

    qdrant_url: str | None = None
    """A Qdrant server; none: an embedded index in the data directory of the worker."""

    qdrant_api_key: SecretStr | None = None
    """The API key of the Qdrant server."""

    qdrant_grpc_port: int = Field(default=6334, ge=0, le=65535)
    """The port of gRPC at the host of `qdrant_url`; 0: REST at the port of the URL, three times the processor time."""

    qdrant_on_disk: Literal["none", "tokens", "all"] = "none"
    """Originals that the Qdrant server reads from its disk: none, token vectors, or all vectors and the payload."""

    qdrant_quantised: Literal["none", "tokens", "all"] = "none"
    """Vectors that are searched by 8-bit copies in memory and compared again by their originals. none: all searches are
    exact."""

    vector_index: Literal["qdrant", "none"] = "qdrant"
    """`none`: memories have no vectors, and are found by their words alone."""

    embedders: dict[str, ConfiguredEmbedder] = Field(default_factory=dict)
    """Embedders in addition to the presets, by the name that modes use: JSON, see `docs/configuration.md`."""

    presets: frozenset[str] | None = None
    """Presets that modes may name, in addition to `general` and its model of other languages: JSON; none: all. Each is
    downloaded with its first use, up to 1.3 GB, and holds up to 2 GB of memory."""

    embedders_allowed: Literal["presets", "any"] = "presets"
    """`any`: modes may name every text model of fastembed. It is fetched from its hub in the background, within the
    limits of `fetch_max_…`."""

    fetch_max_model_mb: int = Field(default=1500, ge=1)
    """Megabytes of the files of one model that is fetched for a mode."""

    fetch_max_models: int = Field(default=4, ge=1)
    """Models that are fetched: each in use holds up to twice its size of memory."""

    fetch_max_total_mb: int = Field(default=5000, ge=1)
    """Megabytes of all fetched models."""

    general_embedder: str | None = None
    """The embedder of the mode `general` of users that declare none: a preset, or one of `embedders`. None: that of the
    deployment's record, by default `general`. Where it is set, the record follows."""

    categories: NamedCategories = NamedCategories()
    """Categories of every scope, descriptions by name: JSON, see `docs/configuration.md`."""

    llm_profiles: Profiles = Profiles()
    """Language models by profile name, including `default`: JSON, see `docs/configuration.md`. Empty: rules decide."""

    prompts: Path | None = None
    """A directory of prompt templates in addition to the project's, see `docs/configuration.md`."""

    prompt_versions: dict[str, str] = Field(default_factory=dict)
    """Versions of templates that are used in place of the project's, by name: JSON, `{"rerank": "rerank-acme-1"}`."""

    pipeline_packages: frozenset[PackageName] = frozenset()
    """Packages that custom steps may come from, each with all below it: JSON, `["acme"]`. Empty: none."""

    llm_concurrency: int = Field(default=8, ge=1)
    """Turns that language models read concurrently; each profile has a limit of its own in addition."""

    llm_backlog_per_second: float = Field(default=20.0, gt=0)
    """Turns a second of the backlog after an outage of the language model, in addition to new turns."""

    refresh_calls: int = Field(default=500, ge=1)
    """Limit of language model calls of one `refresh`; the rest is left for the next."""

    refresh_tokens: int = Field(default=1_000_000, ge=1)
    """Limit of language model tokens of one `refresh`."""

    embedding_precision: Literal["int8", "fp32"] = "int8"
    """Precision of the general model. fp32 is half as fast without better recall."""

    embedding_threads: int = Field(default=0, ge=0)
    """Texts that are embedded concurrently; 0: one for each core."""

    embedder_idle_minutes: float = Field(default=60.0, ge=0)
    """Minutes without a use after which the model of a mode's own embedder is unloaded; 0: never."""

    shared_embedders: bool = False
    """Let all workers of a data directory use one process for each model; set by `--workers` and `--processes`."""

    model_dir: Path | None = None
    """Directory of exported models; none: `models` in the data directory."""

    ranking_weights: Path | None = None
    """A file of ranking weights; none: those of the project."""

    taxonomy: Path | None = None
    """A file of the interaction modes' tables, see `docs/configuration.md`; none: those of the project."""

    standby_copies: int = Field(default=0, ge=0)
    """Workers, besides the one that serves a partition, that keep a copy of its tables and words: it is answered again
    within seconds when its worker is lost with its disk."""

    consolidation_seconds: float = Field(default=300.0, gt=0)
    """Time limit of one consolidation; the rest is left for the next."""

    consolidate_every: float | None = Field(default=None, gt=0)
    """Hours between two consolidations of an active scope; none: only by trigger."""

    maintain_every: dict[MaintenanceTask, Hours] = Field(default_factory=dict)
    """Hours between two runs of `reconcile`, `retry_failed`, `verify` of each user, and of `backup`: JSON. Empty: only
    by hand."""

    backup_to: Path | None = None
    """The folder of scheduled backups: one that the worker which has the first partition can write."""

    consolidation_tokens: int = Field(default=200_000, ge=0)
    """Limit of language model tokens of one consolidation."""

    events_kept_hours: float = Field(default=24.0, ge=0)
    """Hours that the worker's own events stay in Kafka's log after they were written and handled."""

    turns_kept_hours: float | None = Field(default=None, gt=0)
    """Hours that turns stay in `memory.turns` after they were written and handled; then `memory.archive` has the last
    text of each. None: for ever."""

    erase_within_hours: float | None = Field(default=None, gt=0)
    """Hours within which forgotten and replaced texts are in no file of worker and broker, see `docs/configuration.md`;
    limits how long turns and events are kept. None: as long as the other settings say."""

    runs_sample: float = Field(default=0.01, ge=0, le=1)
    """Share of turns, questions, contexts and consolidations whose run is recorded; failed ones are in any case."""

    runs_text: bool = False
    """Let run records have the texts of questions, and messages of errors."""

    runs_kept_hours: float = Field(default=168.0, gt=0)
    """Hours that run records stay in Kafka."""

    context_log: Literal["off", "ids"] = "off"
    """Log what contexts and answers were based on, by ids, on the topic `contexts`."""

    context_log_hours: float = Field(default=720.0, gt=0)
    """Hours that these records stay in Kafka."""

    cloudevents_source: str | None = Field(default=None, min_length=1, max_length=256)
    """The `source` of CloudEvents attributes on the headers of events, a URI reference such as `/memory/eu`. None: no
    attributes."""

    schema_registry: SecretStr | None = None
    """Address of a Schema Registry where workers register the JSON Schemas of public topics, with the user and password
    of its HTTP authentication if it has any; none: nowhere."""

    scope_model: DeployedScope = Scope
    """The scope model: dotted path of a Pydantic model, see `docs/configuration.md`. It can't be changed later."""

    authorization: Path | None = None
    """A file of grants to principals, see `docs/configuration.md`; none: every Kafka producer may do everything but
    operate."""

    authorizer: str | None = None
    """A function in place of that file, by its dotted path: it takes a principal, and returns its grants."""

    selector_combinations: int = Field(default=1000, ge=1)
    """Limit of scopes that one selector may match."""

    context_min_score: float = Field(default=DEFAULT_MIN_SCORE, ge=0, le=1)
    """Score below which a memory is no evidence of an assembled context, where the request has no `min_score`."""

    context_min_best_score: float = Field(default=DEFAULT_MIN_BEST_SCORE, ge=0, le=1)
    """Score that the best memory must have for a context to have any evidence, likewise."""

    context_max_tokens: int = Field(default=MAX_BUDGET_TOKENS, ge=MIN_BUDGET_TOKENS)
    """Limit of the budget of one assembled context."""

    most_hits: int = Field(default=100, ge=1, le=100)
    """Limit of hits of one answer."""

    rerank: bool = False
    """Let a language model order the best hits of requests that do not say whether."""

    rerank_candidates: int = Field(default=20, ge=2, le=100)
    """Hits that the model is shown."""

    rerank_timeout_s: float = Field(default=5.0, gt=0)
    """Time limit of the model; past it the hits keep their order."""

    sufficiency: Literal["rules", "model"] = "rules"
    """What says whether a layer suffices, of requests with `depth` `auto` that do not say."""

    sufficiency_timeout_s: float = Field(default=3.0, gt=0)
    """Time limit of the model; past it the rules say."""

    files: str | None = None
    """Where the bytes of files are: a folder, or `s3://bucket/prefix` with the variables of AWS's clients. None:
    `files` in the data directory."""

    files_max_bytes: int = Field(default=DEFAULT_MAX_FILE_BYTES, ge=1)
    """Maximum bytes of one file."""

    files_grace_s: float = Field(default=3600.0, ge=0)
    """Seconds after which `reconcile` removes bytes that no memory has: a turn may be on its way until then."""

    fetch_uris: tuple[str, ...] = ()
    """Prefixes of the addresses (`https`, `http`, `s3`) whose bytes are fetched and read: JSON. Empty: none."""

    file_processes: int = Field(default=2, ge=1)
    """Files that are read concurrently, each in a process that does nothing else."""

    file_seconds: float = Field(default=600.0, gt=0)
    """Limit of the time that reading one file takes; the wait for a model is not counted."""

    file_memory_mb: int = Field(default=1500, ge=256)
    """Limit of the memory of a process that reads files."""

    file_characters: int = Field(default=2_000_000, ge=1)
    """Limit of the text of one file."""

    worker_id: str | None = None
    """Identifies a worker, so that it gets its partitions back at once after a restart; none: from a file."""

    metrics_host: str = "127.0.0.1"
    """The address of `/metrics`, `/live` and `/health`, which need no key and show no memories."""

    metrics_port: int = Field(default=0, ge=0, lt=65536)
    """The port of `/metrics` and `/live`; 0: a free one, written to `run/metrics.port`."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Level of the structured logs on standard error. Texts of memories are never logged at info or above."""

    @model_validator(mode="after")
    def _has_folder(self) -> Self:
        if "backup" in self.maintain_every and self.backup_to is None:
            raise ValueError("MAINTAIN_EVERY has `backup`: set MODESTREAM_BACKUP_TO to the folder of the backups")
        return self

    @field_validator("embedders")
    @classmethod
    def _leave_general(cls, embedders: dict[str, ConfiguredEmbedder]) -> dict[str, ConfiguredEmbedder]:
        if GENERAL in embedders:
            raise ValueError(f"{GENERAL!r} is the embedder of every user's first mode; choose another name")
        return embedders

    @property
    def vector_index_kind(self) -> VectorIndexKind:
        if self.vector_index == "none":
            return "none"
        return "server" if self.qdrant_url else "embedded"

    @property
    def bootstrap_servers(self) -> list[str]:
        return [address.removeprefix("kafka://") for address in self.broker.split(";")]

    @property
    def kafka_connection(self) -> KafkaConnection:
        """What every client of the broker is created with.

        Raises ValueError or OSError for a password or a file that can't be used.
        """
        return {"bootstrap_servers": self.bootstrap_servers, **connection_options(self.kafka_security)}

    @property
    def worker_secrets(self) -> frozenset[str]:
        """Names of the environment variables with secrets that a worker alone needs."""
        keys = {profile.api_key_env for _, profile in self.llm_profiles.items() if profile.api_key_env}
        return frozenset({*keys, "MODESTREAM_QDRANT_API_KEY", "MODESTREAM_SCHEMA_REGISTRY"})

    @property
    def models(self) -> Path:
        """The directory of exported models."""
        return self.model_dir or self.data_dir / "models"

    @property
    def file_place(self) -> str:
        return self.files or str(self.data_dir / "files")

    @property
    def embedder_dir(self) -> Path:
        """The directory of the embedders' processes: one for all workers of the data directory, or this worker's."""
        return shared_embedder_dir(self.data_dir) if self.shared_embedders else self.worker_run / EMBEDDERS

    @property
    def worker_run(self) -> Path:
        """The directory of this worker's own run files."""
        return worker_run_dir(self.data_dir, self.worker_id)


WORKER_RUN_PREFIX = "worker-"
"""Starts the names of the directories of workers that have an id in their settings."""


def worker_run_dir(data_dir: Path, worker_id: str | None) -> Path:
    """Return the directory of a worker's run files: locks, ports, what it did last. Each id has its own."""
    return data_dir / "run" / f"{WORKER_RUN_PREFIX}{quote(worker_id, safe='')}" if worker_id else data_dir / "run"


EMBEDDERS = "embedders"
"""The name of the directory of the sockets and locks of embedders."""


def shared_embedder_dir(data_dir: Path) -> Path:
    """Return the directory of the embedders that all workers of a data directory share."""
    return data_dir / "run" / EMBEDDERS
