"""Where the service is, for all transports: environment variables with the prefix `MODESTREAM_`, or a `.env` file."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from modestream_client.kafka.security import KafkaSecurity
from pydantic import AfterValidator, BaseModel, BeforeValidator, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from schemas.internal.service import Successor, TopicPrefix
from schemas.scope_models import load_scope
from schemas.scopes import Scope, ScopeValue, UserName

USUAL_TOOLS = (
    "search_memory", "add_memory", "list_memories", "get_memory", "delete_memory", "list_modes", "set_memory_mode",
    "assemble_context",
)  # fmt: skip
"""Served unless the setting says otherwise. No tool forgets more than one memory."""

MODEL_TOOLS = ("ask_memory",)
"""Served where a language model is set, or if the setting names them."""

MORE_TOOLS = ("declare_mode", "get_intention", "set_intention", "get_context", "rate_memories", "health")
"""Served only if the setting names them: each tool costs tokens in every conversation."""


def parted(value: object) -> object:
    """Split a text at its commas; return other values unchanged."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def known_tools(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of tools. Raises ValueError for an unknown one."""
    tools = (*USUAL_TOOLS, *MODEL_TOOLS, *MORE_TOOLS)
    if unknown := [name for name in names if name not in tools]:
        raise ValueError(f"there is no tool {unknown[0]!r}; there are: {', '.join(tools)}")
    return names


class ConnectionSettings(BaseSettings):
    """Each field is read from `MODESTREAM_<NAME>`; a wrong one is refused at the start."""

    model_config = SettingsConfigDict(
        env_prefix="MODESTREAM_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    broker: str = "kafka://127.0.0.1:9092"
    """Kafka's address; several are separated by `;`."""

    topic_prefix: TopicPrefix = "memory."
    """Prefix of all topic names."""

    scope_model: Annotated[type[Scope], BeforeValidator(load_scope)] = Scope
    """The scope model of the deployment."""

    gateway_mcp_tools: Annotated[tuple[str, ...], NoDecode, BeforeValidator(parted), AfterValidator(known_tools)] = (
        USUAL_TOOLS
    )
    """The MCP tools that are served, parted by commas; `declare_mode` and others are served only if they are named."""

    llm_profiles: dict[str, Any] = {}
    """The workers' profiles; here it matters only whether there are any."""

    kafka_security: KafkaSecurity | None = None
    """TLS and SASL towards Kafka: JSON, the same as the worker's."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Level of the logs on standard error."""

    @property
    def mcp_tools(self) -> tuple[str, ...]:
        return (*self.gateway_mcp_tools, *(MODEL_TOOLS if self.llm_profiles else ()))

    @property
    def bootstrap(self) -> str:
        """The broker's addresses, joined by commas."""
        return ",".join(address.removeprefix("kafka://") for address in self.broker.split(";"))

    def at(self, successor: Successor) -> Self:
        update = {"topic_prefix": successor.topic_prefix, "broker": successor.broker or self.broker}
        return self.model_copy(update=update)


class StdioSettings(ConnectionSettings):
    """Settings of the Model Context Protocol on standard input and output: it serves one user."""

    user: UserName
    """The user whose memories they are; of several boundary fields the canonical string."""

    project: ScopeValue = "default"
    """The default project of calls."""

    principal: str | None = None
    """The sender, where the deployment has a file of grants."""

    @model_validator(mode="after")
    def _names_a_user(self) -> Self:
        try:
            self.scope_model.boundary_fields.values(self.user)
        except ValueError as problem:
            raise ValueError(f"USER: {problem}") from None
        return self


class SettingInForce(NamedTuple):
    """A setting without its secrets. `name` has no prefix; `value` is None where it is not set."""

    name: str
    value: Any
    is_changed: bool
    description: str


SECRET = re.compile(r"(key|token|password|secret)$", re.IGNORECASE)
"""Names of secrets, also within values."""

REDACTED = "set, not shown"

USER_OF_ADDRESS = re.compile(r"(?<=//)[^/@\s]+@")
"""Name and password in an address."""


def settings_in_force(settings: BaseSettings) -> list[SettingInForce]:
    """Return all settings, by name, without secrets."""
    fields = sorted(type(settings).model_fields.items())
    values = {name: getattr(settings, name) for name, _ in fields}
    return [
        SettingInForce(
            name.upper(),
            _without_secrets(name, values[name]),
            values[name] != field.get_default(call_default_factory=True, validated_data={}),
            " ".join((field.description or "").replace("`", "").split()),
        )
        for name, field in fields
    ]


def _without_secrets(name: str, value: Any) -> Any:
    if value is None or value == "":
        return None
    if isinstance(value, SecretStr) or SECRET.search(name):
        return REDACTED
    if isinstance(value, BaseModel):
        value = {field: getattr(value, field) for field in type(value).model_fields}
    if isinstance(value, Mapping):
        return {field: _without_secrets(str(field), part) for field, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(name, part) for part in value]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return value if isinstance(value, bool | int | float) else USER_OF_ADDRESS.sub("", str(value))
