"""Custom steps of a deployment, as classes that tests name by their dotted paths."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from modestream_client.hits import Hit
from pydantic import BaseModel

from agents.ports.pipelines import StepPorts
from agents.rules.items.extracting import ExtractedItem
from schemas.messages.turns import Turn
from schemas.models.language import Prompt
from schemas.state.files import FileText, FileToRead, Segment
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding

HERE = __name__
STAMP = "(stamped)"
CARD = re.compile(r"\b\d{4}(?: ?\d{4}){3}\b")


class RedactCards:
    """Replaces card numbers in the text of a turn."""

    role = "preprocess"
    requires = ("turn",)
    produces = ("turn",)
    capabilities: tuple[str, ...] = ()

    class Config(BaseModel, extra="forbid"):
        replacement: str = "[card]"

    def __init__(self, config: Any, _ports: StepPorts) -> None:
        self._replacement = config.replacement

    async def __call__(self, turn: Turn) -> dict[str, Turn]:
        return {"turn": turn.model_copy(update={"content": CARD.sub(self._replacement, turn.content)})}


class Stamp(RedactCards):
    """Says at the end of each turn that it was here."""

    async def __call__(self, turn: Turn) -> dict[str, Turn]:
        return {"turn": turn.model_copy(update={"content": f"{turn.content} {STAMP}"})}


class RedactFile:
    """Replaces card numbers in the text of a file; one that has `card 0` is more than it can do."""

    role = "preprocess"
    requires = ("file_text",)
    produces = ("file_text",)
    capabilities: tuple[str, ...] = ()

    def __init__(self, _config: Any, _ports: StepPorts) -> None: ...

    async def __call__(self, file_text: FileText) -> dict[str, FileText]:
        if "card 0" in file_text.text:
            raise RuntimeError(file_text.text)
        return {"file_text": FileText(CARD.sub("[card]", file_text.text), file_text.reader)}


class ReadBackwards(RedactFile):
    """Reads the bytes of a file from its end."""

    requires = ("file",)

    async def __call__(self, file: FileToRead) -> dict[str, FileText]:  # type: ignore[override]
        return {"file_text": FileText(file.path.read_text()[::-1], f"backwards {file.name}")}


class SegmentBeyondTheEnd(RedactFile):
    """Returns a segment that the text does not have."""

    async def __call__(self, file_text: FileText) -> dict[str, FileText]:
        return {"file_text": FileText("short", file_text.reader, (Segment(0, 99),))}


class Unreliable:
    """Does what the text of a turn tells it to."""

    role = "preprocess"
    requires = ("turn",)
    produces = ("turn",)
    capabilities: tuple[str, ...] = ()

    def __init__(self, _config: Any, _ports: StepPorts) -> None: ...

    async def __call__(self, turn: Turn) -> Any:
        if "raise" in turn.content:
            raise RuntimeError(turn.content)
        if "exit" in turn.content:
            raise SystemExit(turn.content)
        if "interrupt" in turn.content:
            raise KeyboardInterrupt
        if "cancel" in turn.content:
            raise asyncio.CancelledError
        if "hang" in turn.content:
            await asyncio.sleep(3600)
        if "steal" in turn.content:
            return {"turn": turn.model_copy(update={"scope": turn.scope.model_copy(update={"user_id": "other"})})}
        if "grow" in turn.content:
            return {"turn": turn.model_copy(update={"content": "x" * 40_000})}
        return {"items": []} if "undeclared" in turn.content else {"turn": turn}


class LongItemsOnly:
    """Leaves the items of a turn that have more than so many characters."""

    role = "extract"
    requires = ("items",)
    produces = ("items",)
    capabilities: tuple[str, ...] = ()

    class Config(BaseModel, extra="forbid"):
        at_least: int = 30

    def __init__(self, config: Any, _ports: StepPorts) -> None:
        self._at_least = config.at_least

    def __call__(self, items: Sequence[ExtractedItem]) -> dict[str, list[ExtractedItem]]:
        return {"items": [item for item in items if len(item.text) >= self._at_least]}


class WholeTextAsItem:
    """Takes the place of the extraction: the whole text is one fact."""

    role = "extract"
    requires = ("memory",)
    produces = ("items",)
    capabilities: tuple[str, ...] = ()

    def __init__(self, _config: Any, _ports: StepPorts) -> None: ...

    async def __call__(self, memory: Memory) -> dict[str, list[ExtractedItem]]:
        item = ExtractedItem(
            kind="fact",
            type="semantic",
            text=memory.text,
            start=0,
            end=len(memory.text),
            resource=None,
            confidence=0.9,
            stability=0.9,
            claim=None,
            entities=(),
            times=(),
        )
        return {"items": [item]}


class Reverse:
    """Reverses the hits, and says the query backwards."""

    role = "verify"
    requires = ("hits",)
    produces = ("hits",)
    capabilities: tuple[str, ...] = ()

    def __init__(self, _config: Any, _ports: StepPorts) -> None: ...

    async def __call__(self, hits: Sequence[Hit]) -> dict[str, list[Hit]]:
        return {"hits": [*hits][::-1]}


class Invent(Reverse):
    """Returns a hit that it was not given."""

    async def __call__(self, hits: Sequence[Hit]) -> dict[str, list[Hit]]:
        return {"hits": [hit.model_copy(update={"memory_id": "invented"}) for hit in hits]}


class Synonyms:
    """Replaces words of the query."""

    role = "route"
    requires = ("query",)
    produces = ("query",)
    capabilities: tuple[str, ...] = ()

    class Config(BaseModel, extra="forbid"):
        words: dict[str, str] = {}

    def __init__(self, config: Any, _ports: StepPorts) -> None:
        self._words = config.words

    async def __call__(self, query: str) -> dict[str, str]:
        return {"query": " ".join(self._words.get(word, word) for word in query.split())}


class Topic(BaseModel):
    """A model's answer."""

    mode: str | None = None


class WithTopic:
    """Adds the topic that a language model names."""

    role = "understand"
    requires = ("memory", "understanding")
    produces = ("understanding",)
    capabilities = ("language_model",)

    def __init__(self, _config: Any, ports: StepPorts) -> None:
        assert ports.language_model is not None
        self._model = ports.language_model

    async def __call__(self, memory: Memory, understanding: Understanding) -> dict[str, Understanding]:
        answered = await self._model.ask("own.topic", self.role, Prompt("name it", memory.text, "topic-1"), Topic)
        return {"understanding": understanding.model_copy(update={"topic": f"topic {answered.answer.mode}"})}


class OrderedByModel(Reverse):
    """Asks a language model about the hits, and reverses them."""

    capabilities = ("language_model",)

    def __init__(self, _config: Any, ports: StepPorts) -> None:
        assert ports.language_model is not None
        self._model = ports.language_model

    async def __call__(self, hits: Sequence[Hit]) -> dict[str, list[Hit]]:
        shown = "\n".join(hit.text for hit in hits)
        await self._model.ask("own.order", self.role, Prompt("order them", shown, "order-1"), Topic)
        return {"hits": [*hits][::-1]}


class NothingOfMonday:
    """Leaves turns about a Monday out of consolidations."""

    role = "select"
    requires = ("turns",)
    produces = ("turns",)
    capabilities: tuple[str, ...] = ()

    def __init__(self, _config: Any, _ports: StepPorts) -> None: ...

    async def __call__(self, turns: Sequence[Any]) -> dict[str, list[Any]]:
        return {"turns": [turn for turn in turns if "Monday" not in turn.text]}


class Writes(Reverse):
    """Asks for a capability that custom steps do not have."""

    capabilities = ("writes",)


class NoContract:
    """Is no step."""


class Broken(Reverse):
    """Can't be constructed."""

    def __init__(self, _config: Any, _ports: StepPorts) -> None:
        raise ValueError("no licence")


class BrokenQuery(Synonyms):
    """Fails at every query, and counts them."""

    calls = 0

    async def __call__(self, query: str) -> dict[str, str]:
        type(self).calls += 1
        raise RuntimeError(query)


class Searches(RedactCards):
    """Searches as often as its settings say, and notes in the turn's metadata how many hits there were."""

    capabilities = ("vector_search",)

    class Config(BaseModel, extra="forbid"):
        times: int = 1
        top_k: int = 10

    def __init__(self, config: Any, ports: StepPorts) -> None:
        assert ports.search is not None
        self._config, self._search = config, ports.search

    async def __call__(self, turn: Turn) -> dict[str, Turn]:
        found = [len(await self._search(turn.content, self._config.top_k)) for _ in range(self._config.times)]
        return {"turn": turn.model_copy(update={"metadata": {**turn.metadata, "found": found}})}


class SearchesHits(Reverse):
    """Searches because of a question, and reverses the hits."""

    capabilities = ("vector_search",)

    def __init__(self, _config: Any, ports: StepPorts) -> None:
        assert ports.search is not None
        self._search = ports.search

    async def __call__(self, hits: Sequence[Hit]) -> dict[str, list[Hit]]:
        assert await self._search("lantern")
        return {"hits": [*hits][::-1]}


class Echoes(RedactCards):
    """Writes a turn because of each turn."""

    capabilities = ("writes",)

    def __init__(self, _config: Any, ports: StepPorts) -> None:
        assert ports.remember is not None
        self._remember = ports.remember

    async def __call__(self, turn: Turn) -> dict[str, Turn]:
        await self._remember(f"Echo: {turn.content}")
        return {"turn": turn}


class FailsOnce(RedactCards):
    """Fails at every first attempt."""

    calls = 0

    async def __call__(self, turn: Turn) -> dict[str, Turn]:
        type(self).calls += 1
        if type(self).calls % 2:
            raise RuntimeError
        return {"turn": turn}


class CountsItself(RedactCards):
    """Notes how many of its calls there are at a time."""

    now = most = 0

    async def __call__(self, turn: Turn) -> dict[str, Turn]:
        kind = type(self)
        kind.now += 1
        kind.most = max(kind.most, kind.now)
        await asyncio.sleep(0.01)
        kind.now -= 1
        return {"turn": turn}
