"""The example of `docs/pipelines.md`, as it stands there."""

import json
import re
import sys
from pathlib import Path
from typing import get_args

import pytest

from agents.rules.pipelines.built_in import BUILT_IN
from agents.rules.pipelines.contract import Rule
from streams.flow.runs.recorder import RunOptions
from tests.worlds.in_memory_pipeline import InMemoryPipeline

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text()
EXAMPLE = PAGE.partition("## An example")[2].partition("\n## ")[0]
WORKED = PAGE.partition("## A worked example")[2]


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


async def test_worked_example_links_orders_and_is_compared_and_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, step = re.findall(r"```python\n(.*?)```", WORKED, re.DOTALL)
    linking, stricter = map(json.loads, re.findall(r"```json\n(.*?)```", WORKED, re.DOTALL))
    taxonomy = tmp_path / "shop_taxonomy.json"
    exec(tables.replace('"shop_taxonomy.json"', f'"{taxonomy}"'), {})
    (tmp_path / "shop.py").write_text(step)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    [packages] = re.findall(r"MODESTREAM_PIPELINE_PACKAGES='(.*?)'", WORKED)
    more = {"pipeline_packages": json.loads(packages), "taxonomy": taxonomy}
    world = InMemoryPipeline(tmp_path / "data", more_settings=more, run_options=RunOptions(sample=1, texts=True))
    async with world.running() as pipeline:
        context = await pipeline.assemble("anything")
        assert context["result"]["diagnostics"]["taxonomy_version"] == "shop-1"
        assert (await pipeline.command("edit_pipeline", **linking))["result"]["revision"] == 1
        for text in ("Where is order #77?", "Nothing came of order #77 yet.", "And again no word about order #77."):
            await pipeline.remember(text)
            await pipeline.topics.settled()
        made = pipeline.memory("Order #77 came up three times.")
        assert made.metadata == {"order": "77", "made_by": "memorize.link_orders"}
        assert len(pipeline.memory("And again no word about order #77.").metadata["related"]) == 2
        found = await pipeline.retrieve("what about order 77?")
        compared = (await pipeline.command("edit_pipeline", **stricter))["result"]
        assert compared["revision"] == 1
        [difference] = [each for each in compared["comparison"]["differences"] if each["kind"] == "retrieve.v1"]
        assert set(difference["removed"]) == {hit["memory_id"] for hit in found["result"]["hits"]}
        assert difference["added"] == []
        back = await pipeline.command("rollback_pipeline", revision=0)
        assert back["result"]["revision"] == 2
        await pipeline.remember("Order #77 is here: thanks for order #77!")
        await pipeline.topics.settled()
        assert "related" not in pipeline.memory("Order #77 is here: thanks for order #77!").metadata
        assert pipeline.memory("Order #77 came up three times.")


def test_page_names_every_step_setting_and_rule() -> None:
    table = PAGE.partition("## Steps\n")[2].partition("\n##")[0]
    rows = {row.split("|")[1].strip(" `"): row.split("|")[4] for row in table.splitlines() if row.startswith("| `")}
    assert list(rows) == list(BUILT_IN)
    for name, contract in BUILT_IN.items():
        assert set(re.findall(r"`(\w+)`", rows[name])) == set(contract.config.model_fields)
    assert [rule for rule in get_args(Rule) if f"`{rule}`" not in PAGE] == []
