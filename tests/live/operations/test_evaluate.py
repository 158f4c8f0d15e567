"""Evaluate, refuse a worse revision, and accept a better one, by the command line on a real broker."""

import json
from pathlib import Path

import pytest

from tests.live.operations.test_migrate import operate
from tests.stream.jobs.test_evaluate import STRICT, texts
from tests.worlds.live.processes import Deployment, eventually

USER = "ana"


@pytest.fixture
async def filled(deployment: Deployment) -> Deployment:
    """Return a deployment with a log that comes back to twelve things."""
    await deployment.ready()
    async with deployment.client(user_id=USER) as client:
        for text in texts():
            await client.remember(text, conversation_id="c1")

        async def is_embedded() -> bool:
            modes = (await client.health()).modes
            return all(mode.ready >= mode.eligible for mode in modes.values())

        await eventually(is_embedded, "all vectors are there")
    return deployment


async def test_worse_revision_is_refused_and_a_better_one_is_accepted(
    filled: Deployment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    edits = tmp_path / "edits.json"
    edits.write_text(json.dumps({"edits": [STRICT]}))
    own = tmp_path / "operator"

    async def users() -> bool:
        code, _ = await operate(filled, own, "evaluate", "--user", USER)
        return code == 0

    await eventually(users, "the user is listed")
    code, printed = await operate(filled, own, "evaluate", "--user", USER, "--pipeline", str(edits))
    assert "worse" in printed
    assert code == 1
    code, _ = await operate(filled, own, "pipeline", "edit", str(edits), "--guard", USER)
    assert "conflict: worse_revision" in capfd.readouterr().err
    assert code == 1
    code, printed = await operate(filled, own, "pipeline", "edit", str(edits))
    assert printed.startswith("revision 1 ")
    code, _ = await operate(filled, own, "pipeline", "rollback", "0", "--guard", USER)
    assert "better: " in capfd.readouterr().err
    assert code == 0
