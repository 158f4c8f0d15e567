"""Language model profiles, prompts and answers.

Unknown fields are refused, and an error names the profile. A profile names the environment variable of its API key.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, RootModel, model_validator

DEFAULT_PROFILE = "default"

StructuredOutput = Literal["json_schema", "json_object", "prompt"]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Profile(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """How to call a model. Times are in seconds, prices in US dollars a token.

    `roles` are steps and roles that use this profile, besides those of its name. `temperature` None leaves it to the
    model. `retries` are attempts after the first. Prices are for models that LiteLLM has no price for.
    """

    model: str = Field(min_length=1)
    api_base: str | None = None
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_tokens: int = Field(default=1000, ge=1)
    timeout_s: float = Field(default=20.0, gt=0, allow_inf_nan=False)
    retries: int = Field(default=2, ge=0, le=10)
    structured_output: StructuredOutput = "json_schema"
    roles: tuple[str, ...] = ()
    input_cost_per_token: Price | None = None
    output_cost_per_token: Price | None = None
    max_concurrency: int = Field(default=8, ge=1)


class Profiles(RootModel[dict[str, Profile]], frozen=True, hide_input_in_errors=True):
    """Profiles by name. Empty: no language model, rules alone decide. Otherwise `default` is required."""

    root: dict[str, Profile] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_complete(self) -> "Profiles":
        if self.root and DEFAULT_PROFILE not in self.root:
            names = sorted(self.root)
            raise ValueError(f"one language model profile must be named {DEFAULT_PROFILE!r}; there are {names}")
        claimed = [role for profile in self.root.values() for role in profile.roles]
        if twice := sorted({role for role in claimed if claimed.count(role) > 1}):
            raise ValueError(f"several language model profiles have the role {twice[0]!r} in `roles`")
        return self

    def __len__(self) -> int:
        return len(self.root)

    def items(self) -> Iterator[tuple[str, Profile]]:
        yield from self.root.items()

    def profile_for(self, step: str, role: str, chosen: str | None = None) -> str | None:
        """Return the profile name of a step: the step's own, else its role's, else `default`; None without profiles.

        `chosen` replaces it: the result is that profile, or None if it does not exist.
        """
        if chosen is not None:
            return chosen if chosen in self.root else None
        return next((name for wanted in (step, role, DEFAULT_PROFILE) if (name := self.profile_of(wanted))), None)

    def profile_of(self, role: str) -> str | None:
        """Return the name of the profile that is set for this role itself; None without one."""
        if role in self.root:
            return role
        return next((name for name, profile in self.root.items() if role in profile.roles), None)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. `version` is that of its template and is recorded with the answer."""

    system: str
    user: str
    version: str


AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[AnswerT]):
    """A valid answer, with the profile and the prompt version that gave it.

    `tokens_in`, `tokens_out` and `cost_usd` are totals over all calls; the cost is None if no price is known.
    `repaired`: the model's first answer was invalid.
    """

    answer: AnswerT
    profile: str
    prompt: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    repaired: bool = False


OnText = Callable[[str], None]
"""Takes the next piece of a text that is being written."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation for the model to continue; the last message is the user's.

    `schema` is the answer's schema in OpenAI's form, an object with `name` and `schema`; None means free text. If
    `max_tokens` or `temperature` is None, the profile's value applies.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: Mapping[str, Any] | None = None
    stop: Sequence[str] = ()
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The whole text of an answer, never empty. `finish_reason` is OpenAI's: `stop`, or `length` for one cut off."""

    text: str
    profile: str
    finish_reason: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said in a part of a sound, in seconds of it; `end_s` None: to its end."""

    text: str
    start_s: float = 0.0
    end_s: float | None = None


class Unanswerable(Exception):
    """The model's answer is invalid, also after one repair, or it refuses the text. Asking again won't help."""

    tokens: int = 0
    """The cost of the invalid answers."""
