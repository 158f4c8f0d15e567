"""A fake language model with configurable answers, empty by default.

Enters: prompts. Leaves: validated answers. Guaranteed: what the port promises, by the contract tests of the real one.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from schemas.failures import Unavailable
from schemas.models.language import (
    AnswerT,
    Chat,
    ChatAnswer,
    Heard,
    ModelAnswer,
    OnText,
    Profile,
    Profiles,
    Prompt,
    Unanswerable,
)

MARK = re.compile(r"\[\[([a-z0-9_-]+)\]\]")
ITEM_MARK = re.compile(r"\[\[item:(.+?):([a-z0-9_-]+)\]\]")
ONE_PROFILE = Profiles({"default": Profile(model="fake/model")})

Behaviour = Literal["ok", "down", "wrong"]
Answers = Callable[[Prompt], dict[str, Any]]


def marked_mode(prompt: Prompt) -> dict[str, Any]:
    """Return the mode in the last `[[name]]` of the prompt's user text, and an item for each `[[item:TEXT:MODE]]`."""
    marks = MARK.findall(prompt.user)
    items = [
        {"kind": "fact", "text": text, "quote": text, "mode": mode} for text, mode in ITEM_MARK.findall(prompt.user)
    ]
    return {"mode": marks[-1] if marks else None, **({"items": items} if items else {})}


class FakeLanguageModel:
    """Implements `agents.ports.models.LanguageModel`. `asked` are the prompts that arrived, in order.

    `become` decides: `ok` answers by `answers`, `down` raises `Unavailable`, `wrong` raises `Unanswerable`. While
    `released` is cleared, questions that arrive wait.
    """

    def __init__(self, answers: Answers = marked_mode, profiles: Profiles = ONE_PROFILE) -> None:
        """Take what answers a prompt: the fields of the object that is asked for."""
        self.asked: list[Prompt] = []
        self.chats: list[Chat] = []
        self.sounds: list[bytes] = []
        self.words = ["Under ", "the ", "pot."]
        """The pieces of an answer in its own words."""
        self.breaks_off = False
        self.answers = answers
        self.tokens_in = 1
        self.released = asyncio.Event()
        self.released.set()
        self._profiles = profiles
        self._up = asyncio.Event()
        counts = {"calls": 0, "failures": 0, "tokens_in": 0, "tokens_out": 0}
        self._counts = {name: dict(counts) for name, _ in profiles.items()}
        self._errors: dict[str, str] = {}
        self.become("ok")

    def say(self, text: str) -> None:
        self.words = re.findall(r"\S+\s*", text)

    def break_off(self, text: str) -> None:
        """Begin with these words, and go away."""
        self.say(text)
        self.breaks_off = True

    def become(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        if behaviour == "down":
            self._up.clear()
        else:
            self._up.set()

    async def ask(
        self, step: str, role: str, prompt: Prompt, answer: type[AnswerT], profile: str | None = None
    ) -> ModelAnswer[AnswerT]:
        """Answer by the current behaviour, also if it changes while the call is held."""
        name = self._profiles.profile_for(step, role, profile)
        if name is None:
            raise Unavailable("no language model is configured")
        self.asked.append(prompt)
        self._counts[name]["calls"] += 1
        await self.released.wait()
        try:
            return ModelAnswer(
                self._answer(prompt, answer), name, prompt.version, tokens_in=self.tokens_in, tokens_out=1
            )
        except (Unavailable, Unanswerable) as problem:
            self._failed(name, problem)
            raise

    async def continue_chat(
        self, step: str, role: str, chat: Chat, profile: str | None = None, on_text: OnText | None = None
    ) -> ChatAnswer:
        """Answer with `words`; streamed, the first one comes before `released` is waited for."""
        name = self._profiles.profile_for(step, role, profile)
        if name is None:
            raise Unavailable("no language model is configured")
        self.chats.append(chat)
        self._counts[name]["calls"] += 1
        if self._behaviour == "down":
            raise self._failed(name, Unavailable("the language model is out of order"))
        for number, word in enumerate(self.words):
            if on_text is not None:
                on_text(word)
            if number == 0:
                await self.released.wait()
        if self.breaks_off:
            raise self._failed(name, Unavailable("the language model breaks off its answer"))
        if self._behaviour == "wrong" or not self.words:
            raise self._failed(name, Unanswerable("the language model answers nonsense"))
        return ChatAnswer("".join(self.words), name, "stop", tokens_in=self.tokens_in, tokens_out=len(self.words))

    async def transcribe(self, step: str, role: str, sound: bytes, name: str) -> Sequence[Heard]:
        """Hear `words`, a second each; `sounds` are those that arrived."""
        profile = self._profiles.profile_for(step, role)
        if profile is None:
            raise Unavailable("no language model is configured")
        self.sounds.append(sound)
        self._counts[profile]["calls"] += 1
        if self._behaviour == "down":
            raise self._failed(profile, Unavailable("the language model is out of order"))
        if self._behaviour == "wrong":
            raise self._failed(profile, Unanswerable("the language model hears nonsense"))
        return [Heard(word.strip(), second, second + 1.0) for second, word in enumerate(self.words)]

    def has_role(self, role: str) -> bool:
        return self._profiles.profile_of(role) is not None

    def _failed(self, name: str, problem: Exception) -> Exception:
        self._counts[name]["failures"] += 1
        self._errors[name] = str(problem)
        return problem

    def available(self, step: str, role: str, profile: str | None = None) -> bool:
        return self._profiles.profile_for(step, role, profile) is not None and self._up.is_set()

    async def until_available(self, step: str, role: str, profile: str | None = None) -> None:
        """Wait until it is not `down`."""
        if self._profiles.profile_for(step, role, profile) is None:
            await asyncio.Event().wait()
        await self._up.wait()

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the number of calls."""
        state = "closed" if self._up.is_set() else "open"
        return {
            name: {"model": profile.model, "state": state, **self._counts[name], "last_error": self._errors.get(name)}
            for name, profile in self._profiles.items()
        }

    async def close(self) -> None:
        """Nothing to release."""

    def _answer(self, prompt: Prompt, answer: type[AnswerT]) -> AnswerT:
        if self._behaviour == "down":
            raise Unavailable("the language model is out of order")
        if self._behaviour == "wrong":
            raise Unanswerable("the language model answers nonsense")
        try:
            return answer.model_validate(self.answers(prompt))
        except ValidationError as error:
            raise Unanswerable("the answer that the test gave is not valid") from error
