"""`kill -9` in the middle of a consolidation: the final state is the same as without a kill."""

from tests.worlds.live.layered import (
    ENOUGH,
    KILLS,
    SUBJECTS,
    assert_same_states,
    collect_end_states,
    consolidate,
    remember_layers,
    same_vectors,
)
from tests.worlds.live.processes import Deployment


async def test_interrupted_consolidation_has_the_same_result(deployment: Deployment) -> None:
    await deployment.ready()
    users = [f"u{number}" for number in range(KILLS + 1)]
    async with deployment.client() as client:
        turns = {user: await remember_layers(client, user) for user in users}
        end = await collect_end_states(deployment, client, turns, consolidate)
        assert end.in_the_middle or KILLS < ENOUGH, "every attempt ended before the kill"
        distilled = [memory for memory in end.of["u0"] if memory[0] == "distilled"]
        assert len(distilled) == len(SUBJECTS)
        assert_same_states(end.of)
        for user in users[1:]:
            assert (await consolidate(client, user))["created"] == []
        await same_vectors(deployment, deployment.workers[-1], end.ids)
