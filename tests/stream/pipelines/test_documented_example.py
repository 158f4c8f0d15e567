"""The example of `docs/pipelines.md`, as it stands there."""

import json
import re
import sys
from pathlib import Path
from typing import get_args

import pytest

from agents.rules.pipelines.built_in import BUILT_IN
from agents.rules.pipelines.contract import Rule
from tests.worlds.in_memory_pipeline import InMemoryPipeline

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text()
EXAMPLE = PAGE.partition("## An example")[2]


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", EXAMPLE, re.DOTALL)
    return str(found)


async def test_example_keeps_card_numbers_out_and_is_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme.py").write_text(block("python"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    [packages] = re.findall(r"MODESTREAM_PIPELINE_PACKAGES='(.*?)'", EXAMPLE)
    world = InMemoryPipeline(tmp_path / "data", more_settings={"pipeline_packages": json.loads(packages)})
    async with world.running() as pipeline:
        reply = await pipeline.command("edit_pipeline", **json.loads(block("json")))
        assert reply["result"]["revision"] == 1
        await pipeline.remember("Pay with 4111 1111 1111 1111.")
        assert await pipeline.texts("pay") == ["Pay with [card]."]
        await pipeline.command("rollback_pipeline", revision=0)
        await pipeline.remember("And 5500 0000 0000 0004.")
        assert "And 5500 0000 0000 0004." in await pipeline.texts("and")
        assert "Pay with [card]." in await pipeline.texts("pay")


def test_page_names_every_step_setting_and_rule() -> None:
    table = PAGE.partition("## Steps\n")[2].partition("\n## ")[0]
    rows = {row.split("|")[1].strip(" `"): row.split("|")[4] for row in table.splitlines() if row.startswith("| `")}
    assert list(rows) == list(BUILT_IN)
    for name, contract in BUILT_IN.items():
        assert set(re.findall(r"`(\w+)`", rows[name])) == set(contract.config.model_fields)
    assert [rule for rule in get_args(Rule) if f"`{rule}`" not in PAGE] == []
