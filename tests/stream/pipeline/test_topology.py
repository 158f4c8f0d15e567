"""The topology: every topic has a reader and a writer, and the diagram of the architecture shows all of them."""

import re
from itertools import pairwise, product
from pathlib import Path

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.settings import Settings
from streams.topics import topic_config, topics_with_prefix
from streams.topology import command_handlers
from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_publisher import Arrow
from tests.worlds.wiring import agents_sharing_steps, observed_arrows, reading_arrows

DOCS = Path(__file__).parents[3] / "docs"

PREFIX = Settings(_env_file=None).topic_prefix

FROM_OUTSIDE = {"turns", "retrieve", "commands", "consolidate"}
"""Topics that producers and clients write (`docs/contract.md`)."""

FOR_OUTSIDE = {"replies", "dead-letters", "boundaries", "runs", "contexts", "receipts"}
"""Topics that clients read."""

FOR_OPERATORS = {"archive"}
"""Topics that operators' commands read, beside the workers."""

BESIDE_THE_EVENTS = {"service", "pipelines"}
"""Topics about the deployment that a worker reads before its agents start; the second one also while it runs."""


async def arrows(directory: Path) -> set[Arrow]:
    """Return the observed arrows: topics to their readers, agents to the topics that they write."""
    drawn = reading_arrows(directory) | await observed_arrows(directory)
    return {(short(left), short(right)) for left, right in drawn}


def short(topic: str) -> str:
    return topic.removeprefix(PREFIX)


def drawn_arrows(text: str) -> set[Arrow]:
    """Return the arrows of the flowchart.

    Nodes are topics without their prefix and agents by their class, `retrieve --> Retrieve`; with any shape, text and
    kind of arrow, several by `&`, and chains.
    """
    [block] = re.findall(r"```mermaid\n(flowchart.*?)```", text, re.DOTALL)
    arrow = re.compile(r"\s(?:-->|-\.->|==>)(?:\|[^|]*\|)?\s")
    lines = [[drawn_nodes(side) for side in arrow.split(line)] for line in block.splitlines()]
    return {drawn for sides in lines for pair in pairwise(sides) for drawn in product(*pair)}


def drawn_nodes(side: str) -> list[str]:
    return [re.split(r"[\[({>]|:::", node)[0].strip() for node in side.split("&")]


async def test_every_topic_has_a_reader_or_writer_in_the_topology(tmp_path: Path) -> None:
    topics = {topic.removeprefix(PREFIX) for topic in topics_with_prefix(PREFIX).all()} - BESIDE_THE_EVENTS
    observed = await arrows(tmp_path)
    read = {left for left, _ in observed} & topics
    written = {right for _, right in observed} & topics
    assert read == topics - FOR_OUTSIDE - FOR_OPERATORS
    assert written == topics - FROM_OUTSIDE | {"turns"}, "`Answer` writes turns, too"


def test_output_topics_accept_larger_records_than_inputs() -> None:
    topics = topics_with_prefix(PREFIX)
    largest = {topic: int(topic_config(topics, topic)["max.message.bytes"]) for topic in topics.all()}
    outside = {PREFIX + topic for topic in FROM_OUTSIDE}
    assert {largest[topic] for topic in outside} == {8 << 20}
    assert {largest[topic] for topic in set(topics.all()) - outside} == {16 << 20}


def test_partitions_are_those_of_javas_default_partitioner() -> None:
    # Made with org.apache.kafka.common.utils.Utils.murmur2 (its own unit test's examples).
    assert [partition_of(key, 2**31) for key in (b"21", b"foobar", b"a-little-bit-long-string")] == [
        -973932308 & 0x7FFFFFFF,
        -790332482 & 0x7FFFFFFF,
        -985981536 & 0x7FFFFFFF,
    ]


def test_every_flowchart_syntax_is_parsed() -> None:
    text = """
```mermaid
flowchart LR
    turns([memory.turns]) --> Remember[Remember: keeper] --> remembered
    Retrieve & Govern -.->|who asked| replies:::outside
```
"""
    assert drawn_arrows(text) == {
        ("turns", "Remember"),
        ("Remember", "remembered"),
        ("Retrieve", "replies"),
        ("Govern", "replies"),
    }


async def test_architecture_diagram_has_the_arrows_of_the_wiring(tmp_path: Path) -> None:
    drawn, wired = drawn_arrows((DOCS / "architecture.md").read_text()), await arrows(tmp_path)
    assert drawn - wired == set()
    # A record is observed to come from a step. The diagram names the agents of that step that cause it.
    shared = agents_sharing_steps(tmp_path)
    missing = {
        (left, right)
        for left, right in wired - drawn
        if not any((neighbour, right) in drawn for neighbour in shared.get(left, ()))
    }
    assert missing == set()


def test_commands_are_the_documented_ones(tmp_path: Path) -> None:
    [table] = re.findall(
        r"^\| command \|.*\n\| --- .*\n((?:\|.*\n)+)", (DOCS / "contract.md").read_text(), re.MULTILINE
    )
    documented = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    agents, _ = InMemoryPipeline(tmp_path).wire(SqliteLexicalIndex(tmp_path))
    assert set(command_handlers(agents.at(0))) == documented


def test_a_command_without_a_handler_is_named(tmp_path: Path) -> None:
    agents, _ = InMemoryPipeline(tmp_path).wire(SqliteLexicalIndex(tmp_path))
    with pytest.raises(KeyError, match="no agent in `command_handlers` has a method for pin_mode"):
        command_handlers(agents.at(0), ["list_modes", "pin_mode"])
