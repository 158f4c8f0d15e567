"""What every token counter promises, on the fake and on the real one."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import get_args

import pytest
from modestream_client.vocabulary import ContextFormat

from agents.ports.models import TokenCounter
from agents.rules.context.formats import FORMATS, Entry, build_messages
from schemas.failures import Unavailable
from schemas.messages.assemble import AssembleRequest
from streams.adapters.tiktoken_counter import OFFLOAD_CHARS, TiktokenCounter, encoding_file
from tests.builders.memories import made
from tests.fakes.tokenizer import FakeTokens

ODD_TEXTS = {
    "emoji": "👩‍👩‍👧 done 🎉",
    "lone surrogate": "half \ud83d of a pair",
    "null and controls": "a\x00b\x07c",
    "right to left": "שלום עולם",
    "no spaces": "東京都は日本の首都です",
    "special tokens": "<|endoftext|><|im_start|>",
    "punctuation": "?!… —",
    "one endless word": "a" * 50_000,
}

KNOWN = {
    "hello world": 2,
    "tiktoken is great!": 6,
    "antidisestablishmentarianism": 6,
    "2 + 2 = 4": 7,
    "お誕生日おめでとう": 9,
}
"""Example counts in `cl100k_base` by its publisher."""

ALONE = """
import asyncio, sys
from streams.adapters.tiktoken_counter import TiktokenCounter

def watch(event, arguments):
    assert event not in ("socket.connect", "socket.getaddrinfo", "urllib.Request"), event

sys.addaudithook(watch)
assert asyncio.run(TiktokenCounter().count(["hello world"])) == [2]
print("litellm" in sys.modules)
"""
"""A program that counts tokens and fails at any connection."""


@pytest.fixture(scope="module")
def tiktoken_counter() -> TiktokenCounter:
    return TiktokenCounter()


@pytest.fixture(params=["fake", "tiktoken"])
def tokens(request: pytest.FixtureRequest, tiktoken_counter: TiktokenCounter) -> TokenCounter:
    return FakeTokens() if request.param == "fake" else tiktoken_counter


async def test_counts_are_in_the_order_of_the_texts(tokens: TokenCounter) -> None:
    assert await tokens.count(["one two three", "", "one"]) == [3, 0, 1]
    assert await tokens.count([]) == []


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
async def test_any_text_has_a_count_that_does_not_depend_on_its_company(tokens: TokenCounter, text: str) -> None:
    [alone] = await tokens.count([text])
    assert alone > 0
    assert await tokens.count(["before", text, "word " * OFFLOAD_CHARS]) == [
        1,
        alone,
        (await tokens.count(["word " * OFFLOAD_CHARS]))[0],
    ]


async def test_special_token_in_a_text_counts_as_ordinary_text(tokens: TokenCounter) -> None:
    [whole] = await tokens.count(["<|endoftext|>"])
    assert whole > 3


async def test_many_at_once_count_the_same(tokens: TokenCounter) -> None:
    texts = ["one two", "three " * OFFLOAD_CHARS]
    counts = await asyncio.gather(*(tokens.count(texts) for _ in range(8)))
    assert all(count == counts[0] for count in counts)


@pytest.mark.parametrize("name", get_args(ContextFormat))
@pytest.mark.parametrize("texts", [["plain"], ['"}]}', "[]", "ends in ,", "}\n\n{", " "], [*ODD_TEXTS.values()][2:7]])
async def test_lines_of_a_prompt_add_up(tokens: TokenCounter, texts: list[str], name: ContextFormat) -> None:
    chosen, entries = FORMATS[name], [Entry.of(made(text, number)) for number, text in enumerate(texts)]
    [empty] = await tokens.count([chosen.body([])])
    [whole] = await tokens.count([chosen.body(entries)])
    lines = [chosen.day(entries[0]), *(chosen.line(entry) for entry in entries)]
    apart = await tokens.count(lines)
    assert abs(whole - empty - sum(apart)) <= 3, "only the last line of a day, and the last day, have no comma"
    assert (await tokens.count(["".join(lines)])) == [sum(apart)]


@pytest.mark.parametrize("name", get_args(ContextFormat))
async def test_no_prompt_exceeds_a_third_of_the_smallest_budget(tokens: TokenCounter, name: ContextFormat) -> None:
    messages = build_messages(
        AssembleRequest.model_validate({"scope": {"user_id": "ana"}, "query": "q"}), FORMATS[name].body([])
    )
    assert sum(await tokens.count([message.content for message in messages])) <= 100


async def test_outage_raises_unavailable_and_ends(tmp_path: Path) -> None:
    fake = FakeTokens()
    file = tmp_path / "encoding"
    real = TiktokenCounter(lambda: file)
    fake.outage = True
    for counter in (fake, real):
        with pytest.raises(Unavailable):
            await counter.count(["one"])
    fake.outage = False
    file.symlink_to(encoding_file())
    for counter in (fake, real):
        assert await counter.count(["one"]) == [1]


async def test_encoding_is_loaded_once_and_off_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def locate() -> Path:
        threads.append(threading.current_thread())
        return encoding_file()

    counter = TiktokenCounter(locate)
    assert threads == []
    await asyncio.gather(*(counter.count(["one"]) for _ in range(5)))
    await counter.count(["two"])
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_invalid_file_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "encoding"
    file.write_bytes(b"YQ== 0\n")
    with pytest.raises(Unavailable) as failure:
        await TiktokenCounter(lambda: file).count(["one"])
    assert isinstance(failure.value.__cause__, ValueError)


async def test_tiktoken_counts_match_published_examples(tiktoken_counter: TiktokenCounter) -> None:
    assert await tiktoken_counter.count([*KNOWN]) == [*KNOWN.values()]


async def test_million_spaces_are_counted(tiktoken_counter: TiktokenCounter) -> None:
    [count] = await tiktoken_counter.count(["y" + " " * 1_000_000 + "x"])
    assert count == pytest.approx(1_000_000 / 128, rel=0.01)


async def test_text_counted_in_pieces_has_the_same_count(tiktoken_counter: TiktokenCounter) -> None:
    row = json.dumps({"content": "The weather on the island was fine. " * 50}) + ",\n"
    [single, many] = await tiktoken_counter.count([row, row * 300])
    assert many == 300 * single


def test_counting_needs_no_network_and_does_not_import_litellm() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
    assert done.returncode == 0, done.stderr
