"""A user's fork: turns that are chosen, a copy that is killed on its way and repeated, questions of both, a drop."""

import json
from pathlib import Path

from modestream_client import MemoryClient

from tests.live.operations.test_migrate import operate, start_operation
from tests.worlds.live.processes import Deployment, eventually

TURNS = 60
FORK = ("fork", "--user", "ana", "--to", "ana-trial", "--without", '{"speaker":"Ben"}')

Shown = dict[tuple[str, str], tuple[str, str, int]]


async def live_a_life(client: MemoryClient) -> str:
    """Say, correct, hide, edit and forget; return the time after it."""
    await client.declare_mode("journal", embedder="general")
    for number in range(TURNS):
        text = f"In week {number} I painted the door of house number {number} green."
        speaker, mode = "Ben" if number % 10 == 9 else "Ana", "journal" if number % 3 else None
        said = await client.remember(text, turn_id=f"t-{number}", conversation_id="c", speaker=speaker, mode=mode)
        if number == 20:
            await client.set_memory_mode(str(said.memory_id), "journal")
        if number == 21:
            await client.set_memory_visibility(str(said.memory_id), searchable=False)
        if number == 22:
            await client.forget(memory_id=said.memory_id)
    await client.remember("The door of house number 30 is red.", turn_id="t-30", conversation_id="c", speaker="Ana")
    last = await client.remember("All doors are painted.", turn_id="last", conversation_id="c", speaker="Ana")
    until = (await client.get_memory(str(last.memory_id))).accepted_at
    await client.remember("This came later.", turn_id="late", conversation_id="c")
    return until


async def shown(client: MemoryClient, user: str) -> Shown:
    return {
        (str(memory.conversation_id), str(memory.turn_id)): (memory.text, memory.mode, memory.version)
        async for memory in client.iter_memories(user_id=user, include_superseded=True)
    }


async def test_fork_is_killed_continued_compared_promoted_and_dropped(
    with_embedders: Deployment, tmp_path: Path
) -> None:
    await with_embedders.ready()

    async def run(*arguments: str) -> tuple[int, str]:
        return await operate(with_embedders, tmp_path, *arguments)

    async with with_embedders.client(user_id="ana") as client:
        until = await live_a_life(client)
        killed = start_operation(with_embedders, tmp_path, *FORK, "--until", until)

        async def has_begun() -> bool:
            return len(await shown(client, "ana-trial")) > 5

        await eventually(has_begun, "turns are forked")
        killed.kill()
        killed.communicate()
        assert (await run(*FORK, "--until", until))[0] == 0
        of_ana = await shown(client, "ana")
        chosen = ["last", *(f"t-{number}" for number in range(TURNS) if number % 10 != 9 and number != 22)]
        expected = {("c", turn_id): of_ana["c", turn_id] for turn_id in chosen}
        assert await shown(client, "ana-trial") == expected
        hidden = [memory.turn_id async for memory in client.iter_memories(user_id="ana-trial") if not memory.searchable]
        assert hidden == ["t-21"]
        answer = await client.retrieve("house number 22", user_id="ana-trial", mode="*")
        assert not [hit for hit in answer.hits if hit.turn_id == "t-22"]

        await client.forget(turn_id="t-40", conversation_id="c")
        printed = (await run(*FORK, "--until", until))[1]
        assert " turns" not in printed
        del expected["c", "t-40"]
        assert await shown(client, "ana-trial") == expected

        questions = tmp_path / "questions.jsonl"
        asked = [
            {
                "question": f"Which colour has the door of house number {number}?",
                "mode": "*",
                "evidence": [f"t-{number}"],
            }
            for number in (1, 30)
        ]
        questions.write_text("\n".join(map(json.dumps, asked)))
        printed = (await run("compare", "--user", "ana", "--with", "ana-trial", "--questions", str(questions)))[1]
        assert "evidence found: ana 1.000, ana-trial 1.000" in printed

        trial = tmp_path / "trial.json"
        trial.write_text('{"modes": {"general": "tiny32"}}')
        assert (await run("fork", "--user", "ana", "--to", "ana-tiny", "--pipeline", str(trial)))[0] == 0
        assert await general_embedder(client, "ana-tiny") == "tiny32"
        assert (await run("promote", "--user", "ana", "--from", "ana-tiny"))[0] == 0
        assert await general_embedder(client, "ana") == "tiny32"

        assert "memories of ana-tiny forgotten, receipt" in (await run("drop", "--user", "ana-tiny"))[1]
        assert not await shown(client, "ana-tiny")
        assert (await run("drop", "--user", "ana"))[0] == 2
        assert (await run("fork", "--user", "ana", "--to", "ana-tiny"))[0] == 2


async def general_embedder(client: MemoryClient, user: str) -> str:
    return next(mode.embedder for mode in (await client.list_modes(user_id=user)).modes if mode.name == "general")
