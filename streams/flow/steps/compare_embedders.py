"""The job `compare_embedders`: a turn after another, behind new ones, since users share a model fairly.

Enters: a job. Leaves: its answer, None if the partition has left meanwhile: the worker that has it now runs it again.
"""

from collections.abc import Awaitable
from typing import Any

from agents.embedding.compare_embedders import CompareEmbedders, VectorPair
from agents.rules.modes.embedder_comparison import SampledTurn, describe
from schemas.failures import ModelMissing
from schemas.internal.changes import Job, JobProgress
from schemas.state.modes import Mode
from streams.backoff import until_available
from streams.flow.worker_context import WorkerContext


async def run_comparison(
    job: Job, tally: JobProgress, agent: CompareEmbedders, partition: int, ctx: WorkerContext
) -> dict[str, Any] | None:
    """Compare each mode of the job; progress counts turns."""
    samples = [(mode, agent.sample(job, mode)) for mode in agent.modes(job)]
    tally.total = sum(len(sample) for _, sample in samples)
    compared = {}
    for mode, sample in samples:
        vectors: list[VectorPair | None] = []
        try:
            for turn in sample:
                if not ctx.is_assigned(partition):
                    return None
                vectors.append(await _encode(agent, turn, mode, ctx))
                tally.processed += 1
        except ModelMissing:
            compared[mode.name] = describe(mode.embedder, sample, "model_missing", None)
        else:
            compared[mode.name] = await agent.conclude(mode, sample, vectors)
    return {"job_id": job.job_id, "compared": compared}


async def _encode(agent: CompareEmbedders, turn: SampledTurn, mode: Mode, ctx: WorkerContext) -> VectorPair | None:
    def encode() -> Awaitable[VectorPair | None]:
        return agent.encode(turn, mode)

    return await until_available(encode, "embedder", ctx.meters)
