"""The program of the documentation that moves a deployment to other settings."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.worlds.live.processes import Deployment

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"


def documented_program() -> dict[str, Any]:
    """Return the names that the documented program defines."""
    [program] = re.findall(r"```python\n(import asyncio.*?)```", OPERATIONS.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "migration"}
    exec(program, names)
    return names


async def test_documented_migration_moves_turns_to_another_scope_model(deployment: Deployment) -> None:
    former = await deployment.ready("former")
    async with deployment.client() as client:
        await client.command("declare_mode", {"name": "journal", "embedder": "general"})
        await client.remember("The kettle is blue.", turn_id="t-1", mode="journal")
        await client.remember("The cat is grey.", conversation_id="c2", turn_id="t-2")
        await client.command("forget", {"conversation_id": "c2"})
        [kettle] = (await client.retrieve("kettle", mode="*")).hits
    await deployment.until_processed()
    assert await former.terminate(30) == 0
    new = replace(
        deployment, prefix=f"new-{deployment.prefix}", more={"SCOPE_MODEL": "tests.builders.scopes.AgentScope"}
    )
    await new.ready("new")
    program = documented_program()
    program.update(FORMER=(deployment.bootstrap, deployment.prefix), NEW=(new.bootstrap, new.prefix))
    await program["copy"]("commands")
    await new.until_processed()
    await program["copy"]("turns")
    await program["copy"]("commands", program["is_forget"])
    await new.until_processed()
    async with new.client(scope={"agent_id": "main"}) as client:
        [moved] = (await client.retrieve("kettle", mode="*")).hits
        assert moved.scope["agent_id"] == "main"
        assert moved.occurred_at == kettle.occurred_at
        assert moved.mode == "journal"
        assert [hit.text for hit in (await client.retrieve("the grey cat", mode="*")).hits] == ["The kettle is blue."]
