"""The options of `migrate`, as its documentation gives them, and the deployment that they name."""

import argparse
import re
import shlex
from pathlib import Path

import pytest

from operations.arguments import add_options, run
from operations.migrate import MigrateOptions
from operations.switch import NotSwitched, check_replaced
from schemas.internal.service import Successor
from streams.settings import Settings

OPERATIONS = Path(__file__).parents[3] / "docs/recovery.md"
SOURCE = Settings(topic_prefix="memory.", partitions=4, broker="kafka://old:9092", _env_file=None)
SERVING = Successor(state="serving", topic_prefix="memory2.")
ELSEWHERE = SERVING.model_copy(update={"broker": "kafka://new:9092"})


def documented(option: str) -> list[str]:
    [line] = re.findall(rf"^modestream (migrate .*{option}.*)$", OPERATIONS.read_text(), re.MULTILINE)
    return shlex.split(line, comments=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(arguments[0], parser)
    return parser.parse_args(arguments[1:])


def options(arguments: list[str]) -> MigrateOptions:
    parsed = parse(arguments)
    return MigrateOptions(to=parsed.to, partitions=parsed.partitions, to_broker=parsed.to_broker, drop=parsed.drop)


def test_documented_drop_finds_a_successor_on_another_broker() -> None:
    target = options(documented("--drop")).successor(SOURCE, ELSEWHERE)
    assert target.topic_prefix == "memory2."
    assert target.broker == "kafka://new:9092"


def test_documented_drop_finds_a_successor_on_the_same_broker() -> None:
    target = options(documented("--drop")).successor(SOURCE, SERVING)
    assert target.topic_prefix == "memory2."
    assert target.broker == "kafka://old:9092"


def test_drop_keeps_a_successor_of_the_same_prefix_apart() -> None:
    elsewhere = ELSEWHERE.model_copy(update={"topic_prefix": "memory."})
    assert options(["migrate", "--to", "memory.", "--drop"]).successor(SOURCE, elsewhere).broker == "kafka://new:9092"


@pytest.mark.parametrize(
    "arguments",
    [["--to", "memory3."], ["--to", "memory2.", "--to-broker", "kafka://third:9092"]],
    ids=["prefix", "broker"],
)
def test_drop_of_what_something_else_replaces_is_refused(arguments: list[str]) -> None:
    with pytest.raises(NotSwitched, match=r"replaced by memory2\. on kafka://new:9092"):
        options(["migrate", *arguments, "--drop"]).successor(SOURCE, ELSEWHERE)


@pytest.mark.parametrize("successor", [None, SERVING.model_copy(update={"state": "withdrawn"})])
def test_drop_of_what_nothing_replaces_is_refused(successor: Successor | None) -> None:
    with pytest.raises(NotSwitched, match="not replaced"):
        options(documented("--drop")).successor(SOURCE, successor)


def test_the_same_prefix_on_another_broker_does_not_replace() -> None:
    target = SOURCE.model_copy(update={"topic_prefix": "memory2."})
    with pytest.raises(NotSwitched, match="kafka://new:9092"):
        check_replaced(SOURCE, target, ELSEWHERE)


def test_another_spelling_of_the_broker_is_the_same_one() -> None:
    target = SOURCE.model_copy(update={"topic_prefix": "memory2.", "broker": "new:9092"})
    assert check_replaced(SOURCE, target, ELSEWHERE)


@pytest.mark.parametrize("further", ["--dry-run", "--follow", "--switch", "--mend"])
def test_drop_is_refused_with_what_it_does_not_do(further: str, capsys: pytest.CaptureFixture[str]) -> None:
    parsed = parse([*documented("--drop"), further])
    unreachable = SOURCE.model_copy(update={"broker": "kafka://127.0.0.1:1"})
    assert run("migrate", parsed, unreachable) == 2
    assert f"--drop can't be combined with {further}" in capsys.readouterr().err
