"""Language models as a deployment names them, what one is asked, and what comes back.

Enters: the profiles of the settings. Guaranteed: every field is one that a profile has, and an error names the profile.
A key is never part of a profile, only the name of the environment variable that holds it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

DEFAULT_PROFILE = "default"
"""The profile of everything that names no other."""

StructuredOutput = Literal["json_schema", "json_object", "prompt"]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Profile(BaseModel):
    """One way to reach a model. Times are seconds, prices US dollars a token.

    `roles` are the steps and roles that this profile is for, beside those that have its name. `temperature` None leaves
    it to the model. `retries` are attempts after the first. Prices are for models that LiteLLM has no price of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

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


class Profiles(RootModel[dict[str, Profile]]):
    """Profiles by name. Empty: there is no language model, and rules decide. Else `default` is one of them."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    root: dict[str, Profile] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_complete(self) -> "Profiles":
        if self.root and DEFAULT_PROFILE not in self.root:
            raise ValueError(
                f"one language model profile must be named {DEFAULT_PROFILE!r}; there are {sorted(self.root)}"
            )
        claimed = [role for profile in self.root.values() for role in profile.roles]
        if twice := sorted({role for role in claimed if claimed.count(role) > 1}):
            raise ValueError(f"several language model profiles have the role {twice[0]!r} in `roles`")
        return self

    def __len__(self) -> int:
        return len(self.root)

    def items(self) -> Iterator[tuple[str, Profile]]:
        """All profiles with their names."""
        yield from self.root.items()

    def profile_for(self, step: str, role: str) -> str | None:
        """The name of a step's profile: the step's own, else its role's, else `default`. None where there is none."""
        return next((name for wanted in (step, role, DEFAULT_PROFILE) if (name := self._for(wanted))), None)

    def _for(self, wanted: str) -> str | None:
        if wanted in self.root:
            return wanted
        return next((name for name, profile in self.root.items() if wanted in profile.roles), None)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked. `version` names the text that it was made from, and is kept with the answer."""

    system: str
    user: str
    version: str


AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[AnswerT]):
    """A valid answer, by which profile and to which version of the prompt.

    `tokens_in`, `tokens_out` and `cost_usd` are of all calls that it took; the cost is None where no price is known.
    `repaired`: the model's first answer was not valid.
    """

    answer: AnswerT
    profile: str
    prompt: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    repaired: bool = False


class Unanswerable(Exception):
    """The model answers, but not validly, also after one repair; or it refuses this text. Asking again won't help."""
