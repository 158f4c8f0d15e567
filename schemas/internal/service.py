"""Records of the topic `service`: a deployment's fixed settings, and other facts that workers and gateways agree on.

`service.v1` is written at the first start of a deployment and compared at every later one. Each record has its own key;
the docstring of the key says which of several records counts.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, computed_field

from schemas.scopes import Scope

SERVICE_KEY = b"service"

UNCHANGEABLE = ("scope_fields", "boundary", "partitions", "topic_prefix")

MAX_PREFIX_CHARS = 200
"""Maximum characters of a topic prefix: Kafka takes names of 249."""


def check_topic_prefix(prefix: str) -> str:
    """Return the prefix. Raises ValueError if Kafka does not allow it in topic names."""
    if re.fullmatch(r"[A-Za-z0-9._-]*", prefix) is None or len(prefix) > MAX_PREFIX_CHARS:
        raise ValueError(f"Kafka takes letters, digits, '.', '_' and '-', and here at most {MAX_PREFIX_CHARS} of them")
    return prefix


TopicPrefix = Annotated[str, AfterValidator(check_topic_prefix)]


class ServiceRecord(BaseModel, frozen=True, populate_by_name=True):
    """Settings used to write all records, tables and indexes of a deployment.

    `schemas` names the kinds of records that its topics keep. Releases may add to it; every other field stays.
    """

    schema_: Literal["service.v1"] = Field(default="service.v1", alias="schema")
    scope_fields: tuple[str, ...]
    boundary: tuple[str, ...]
    partitions: int
    topic_prefix: str
    schemas: tuple[str, ...]

    @computed_field  # type: ignore[prop-decorator]  # mypy does not support decorated properties
    @property
    def scope_schema_hash(self) -> str:
        """The hash of the scope's fields."""
        return scope_schema_hash(self.scope_fields)

    @classmethod
    def of(cls, scope: type[Scope], partitions: int, topic_prefix: str, schemas: Iterable[str]) -> Self:
        """Return the record of a deployment with these settings, in a release with these kinds of records."""
        return cls(
            scope_fields=scope_fields(scope),
            boundary=scope.boundary_fields,
            partitions=partitions,
            topic_prefix=topic_prefix,
            schemas=tuple(sorted(set(schemas))),
        )

    def with_schemas(self, schemas: Iterable[str]) -> Self:
        return self.model_copy(update={"schemas": tuple(sorted({*self.schemas, *schemas}))})

    def conflicts(self, own: Self) -> list[str]:
        """Return the fields in which a worker's own record contradicts this one: another value, or unknown schemas."""
        changed = [name for name in UNCHANGEABLE if getattr(self, name) != getattr(own, name)]
        return changed if set(self.schemas) <= set(own.schemas) else [*changed, "schemas"]


def scope_fields(scope: type[Scope]) -> tuple[str, ...]:
    """Return the names of a scope model's fields, sorted."""
    return tuple(sorted(scope.model_fields))


def scope_schema_hash(names: Iterable[str]) -> str:
    """Return the SHA-256 of sorted field names as a JSON array, in hexadecimal."""
    return hashlib.sha256(json.dumps([*names]).encode()).hexdigest()


RELEASE_KEY = b"release"
"""The key of the record; of several the one with the highest number counts."""


class Release(BaseModel, frozen=True, populate_by_name=True):
    """`number` is the highest that has written the data; a worker joins from the number `oldest` on."""

    schema_: Literal["release.v1"] = Field(default="release.v1", alias="schema")
    number: int
    oldest: int


GENERAL_EMBEDDER_KEY = b"general_embedder"


class GeneralEmbedder(BaseModel, frozen=True, populate_by_name=True):
    """`embedder` is a preset, or a name of the setting `EMBEDDERS` of all workers; `former` is the one before it."""

    schema_: Literal["general_embedder.v1"] = Field(default="general_embedder.v1", alias="schema")
    embedder: str
    former: str = "general"


MODEL_KEY = b"model/"
"""Prefix of the keys of these records; the space follows."""


class ModelRecord(BaseModel, frozen=True, populate_by_name=True):
    """`space` is the digest of the model's fingerprint without `files`, the digest of its other files."""

    schema_: Literal["model.v1"] = Field(default="model.v1", alias="schema")
    embedder: str
    space: str
    files: str

    @property
    def key(self) -> bytes:
        return MODEL_KEY + self.space.encode()


SPACE_KEY = b"space/"
"""What the keys of these records begin with; the digest of the space follows."""


class SpaceRecord(BaseModel, frozen=True, populate_by_name=True):
    """A vector space that memories are in: the digest that records name, and the embedder that makes its vectors."""

    schema_: Literal["space.v1"] = Field(default="space.v1", alias="schema")
    space: str
    embedder: str
    dim: int
    precision: str

    @property
    def key(self) -> bytes:
        return SPACE_KEY + self.space.encode()


SETUP_KEY = b"setup"
"""The key of the record; of several the last one that may follow those before counts."""


class TaxonomyTables(BaseModel, frozen=True):
    """Which tables of interaction modes a worker has. `replaces` are versions whose place they take."""

    version: str
    digest: str
    replaces: tuple[str, ...] = ()

    def is_same(self, other: Self) -> bool:
        return (self.version, self.digest) == (other.version, other.digest)

    def may_follow(self, other: Self) -> bool:
        """True if workers with these tables may join a deployment with the other ones."""
        return self.is_same(other) or (self.version != other.version and other.version in self.replaces)


class Provider(BaseModel, frozen=True):
    """A profile of a language model, without addresses and keys."""

    model: str
    roles: tuple[str, ...] = ()


VectorIndexKind = Literal["embedded", "server", "none"]


class Setup(BaseModel, frozen=True, populate_by_name=True):
    """With what a deployment makes its answers: parts that may change, other than those of `service.v1`.

    `categories` is the digest of the setting's categories, None without any.
    """

    schema_: Literal["setup.v1"] = Field(default="setup.v1", alias="schema")
    vector_index: VectorIndexKind
    providers: dict[str, Provider] = Field(default_factory=dict)
    taxonomy: TaxonomyTables
    categories: str | None = None


SUCCESSOR_KEY = b"successor"
"""The key of the record; of several the last one counts."""

PAUSE_S = 60.0
"""Maximum seconds that gateways wait from `pausing` on; then the former deployment serves again."""

SuccessorState = Literal["pausing", "serving", "withdrawn", "dropped"]
"""`pausing`: they send nothing, while the last records are copied. `serving`: they send to the successor.
`withdrawn`: the former deployment serves after all. `dropped`: the successor serves, and the former topics are deleted.
"""


class Successor(BaseModel, frozen=True, populate_by_name=True):
    """The address of the successor; `broker` is None on the same broker."""

    schema_: Literal["successor.v1"] = Field(default="successor.v1", alias="schema")
    state: SuccessorState
    topic_prefix: str
    broker: str | None = None

    @property
    def serves(self) -> bool:
        """True if gateways send to the successor."""
        return self.state in ("serving", "dropped")
