"""README and docs: links resolve, named code exists, and the documented names are those of the code."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from modestream_client.operations import COMMANDS, READING_COMMANDS, Operation

from schemas.failures import ErrorCode
from schemas.messages.assemble import AnswerRequest, AssembleRequest
from schemas.messages.commands import Command
from schemas.messages.decoding import decode
from schemas.messages.retrieval import ListRequest, MapRequest, RetrieveRequest
from schemas.messages.turns import Turn
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.bootstrap.context import build_context
from streams.flow.pipelines.in_force import shipped_pipelines
from streams.foreground import Foreground
from streams.observability.metrics import Meters, ModelMeters
from streams.runtime.kafka_app import create_kafka_app
from streams.settings import Settings
from streams.topics import topics_with_prefix
from tests.fakes.publisher import FakePublisher

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]

MAX_README_LINES = 150

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HOP = re.compile(r"`([\w/]+\.py):([\w.]+)`")
DOTTED = re.compile(r"`((?:agents|schemas|streams|tests|training)(?:\.\w+)+)`")
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)

MESSAGES: dict[str, type[Any]] = {
    "turn.v1": Turn,
    "retrieve.v1": RetrieveRequest,
    "assemble.v1": AssembleRequest,
    "answer.v1": AnswerRequest,
    "list.v1": ListRequest,
    "map.v1": MapRequest,
    "command.v1": Command,
}


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text())


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text()) if name == language]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows(page: Path, head: str) -> list[list[str]]:
    [table] = re.findall(rf"^{re.escape(head)}\n\|[-| ]+\|\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def defined_names(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{name}" for name in defined_names(node.body))
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def is_defined(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        source = ROOT.joinpath(*parts[:length])
        if source.is_dir():
            return length == len(parts)
        if (module := source.with_suffix(".py")).exists():
            inside = ".".join(parts[length:])
            return not inside or inside in set(defined_names(ast.parse(module.read_text()).body))
    return False


def identifier(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=identifier)
def test_relative_links_resolve(page: Path) -> None:
    relative = [link for link in LINK.findall(prose(page)) if "://" not in link]
    for link in relative:
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("decision", sorted((ROOT / "docs" / "decisions").glob("0*.md")), ids=identifier)
def test_decision_is_in_the_index_with_its_status(decision: Path) -> None:
    heading, _, status = decision.read_text().split("\n")[:3]
    title, word = heading.partition(". ")[2], re.match(r"Status: (\w+)", status)
    assert word
    index = (decision.parent / "README.md").read_text()
    assert re.search(rf"\[{re.escape(title)}\]\({decision.name}\) \| {word[1]}\b", index)


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= MAX_README_LINES


def test_every_hop_of_the_architecture_exists_in_the_code() -> None:
    hops = HOP.findall((DOCS / "architecture.md").read_text())
    assert len(hops) > 30
    for file, name in hops:
        source = ROOT / file
        assert source.exists(), file
        assert name in set(defined_names(ast.parse(source.read_text()).body)), f"{file}:{name}"


@pytest.mark.parametrize("folder", ["agents", "operations", "schemas", "streams", "tests", "training"])
def test_dotted_names_in_docstrings_exist(folder: str) -> None:
    named = {(file, name) for file in (ROOT / folder).rglob("*.py") for name in DOTTED.findall(file.read_text())}
    assert [f"{identifier(file)}: {name}" for file, name in sorted(named) if not is_defined(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=identifier)
def test_python_examples_compile(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block, identifier(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_example_messages_of_the_contract_are_valid() -> None:
    examples = [block.encode() for block in blocks(DOCS / "contract.md", "json") if '"scope": {"user_id"' in block]
    requests = [example for example in examples if b'"schema": "' in example]
    assert {type(decode(request, MESSAGES)) for request in requests} == set(MESSAGES.values())


def test_configuration_names_every_setting() -> None:
    text = (DOCS / "configuration.md").read_text()
    assert [name for name in Settings.model_fields if f"`{name.upper()}`" not in text] == []


def test_contract_names_every_command_and_error_code() -> None:
    text = (DOCS / "contract.md").read_text()
    assert [name for name in (*COMMANDS, *get_args(ErrorCode)) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("row", COMMANDS.values(), ids=lambda row: row.name)
def test_contract_names_every_argument_of_a_command(row: Operation[Any]) -> None:
    lines = (DOCS / "contract.md").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("| `") and f"`{row.name}`" in line.split("|")[1]]
    arguments = {} if row.arguments is None else row.arguments.model_fields
    assert [name for name in arguments if f"`{name}" not in line] == []


def test_contract_names_the_commands_that_need_the_permission_to_read() -> None:
    sentence = (
        (DOCS / "contract.md")
        .read_text()
        .partition("[authorizes](configuration.md#authorization), ")[2]
        .partition(" need ")[0]
    )
    assert set(re.findall(r"`(\w+)`", sentence)) == READING_COMMANDS


def test_the_page_of_topics_names_every_topic() -> None:
    text = (DOCS / "topics.md").read_text()
    assert [topic for topic in topics_with_prefix("memory.").all() if f"`{topic}`" not in text] == []


def test_the_page_of_topics_names_every_table(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, _env_file=None)
    app = create_kafka_app(settings, "w")
    words = SqliteLexicalIndex(tmp_path / "partitions")
    build_context(app, settings, words, FakePublisher(), Meters(), Foreground(), shipped_pipelines())
    tables = (DOCS / "topics.md").read_text().partition("## Tables")[2].partition("\n## ")[0]
    assert set(app.tables) == set(re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE))


def test_the_page_of_telemetry_names_every_metric() -> None:
    text = (DOCS / "telemetry.md").read_text()
    registry = Meters().registry
    ModelMeters(registry)
    assert [metric.name for metric in registry.collect() if f"`{metric.name}`" not in text] == []


def test_architecture_describes_every_package_of_the_import_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    packages = [
        f"{container}.{name.strip()}".replace(".", "/")
        for contract in contracts
        for container in contract.get("containers", [])
        if container in {"agents", "agents.rules", "streams", "streams.flow"}
        for layer in contract["layers"]
        for name in layer.split("|")
    ]
    text = (DOCS / "architecture.md").read_text()
    assert [package for package in packages if f"**`{package}`**" not in text] == []


def test_tests_of_the_bounds_exist() -> None:
    section = (ROOT / "docs" / "bounds.md").read_text().partition("## Bounds")[2].partition("\n## ")[0]
    named = re.findall(r"`((?:unit|live|contract|stream)/[\w/]+(?:\.py)?(?:::\w+)?)`", section)
    assert len(named) > 50
    missing = []
    for record in named:
        path, _, name = record.partition("::")
        file = ROOT / "tests" / path
        if not file.exists() or (name and f"def {name}(" not in file.read_text()):
            missing.append(record)
    assert missing == []


RECALL = "| system | recall@5 | recall@10 |"


def test_readme_has_the_recall_of_the_run_in_the_repository() -> None:
    assert rows(README, RECALL) == rows(DOCS / "recall.md", RECALL)


def test_readme_has_the_costs_of_the_capacity_page() -> None:
    measured = {
        (measurement, figure)
        for _, measurement, figure, _ in rows(DOCS / "capacity.md", "| # | measurement | figure | measured by |")
    }
    shown = {(measurement, figure) for measurement, figure in rows(README, "| measurement | figure |")}
    assert shown - measured == set()


def test_readme_has_the_recall_of_the_ranking_report() -> None:
    [report] = re.findall(
        r"## Variant `tokens`.*?\| \*\*all\*\* \| ([\d. /]+) \|", (DOCS / "ranking_report.md").read_text(), re.DOTALL
    )
    [shown] = re.findall(r"ranked by weights fitted without it: ([\d. /]+)\n", README.read_text())
    assert shown == report
