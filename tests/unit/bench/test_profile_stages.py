"""The stage of a sampled stack, and the stages' milliseconds."""

import pytest

from bench.profile.samples import Sample, parse_samples, stage_costs
from bench.profile.stages import OTHER, STAGES, stage_of
from bench.profile.threads import CONSUMER, EVENT_LOOP, NATIVE, OTHER_PYTHON

ROOT = ["run_worker (streams/worker.py:294)", "Worker.execute_from_commandline (mode/worker.py:264)"]
AGENT = [*ROOT, "Agent._execute_actor (faust/agents/agent.py:698)", "Delivery.run (streams/runtime/delivery.py:142)"]
REMEMBER = [*AGENT, "RequestPipeline._handle (streams/flow/requests/pipeline.py:67)"]


@pytest.mark.parametrize(
    ("frames", "stage"),
    [
        ([*REMEMBER, "KeepItems.put (agents/memory/items.py:87)"], "records and changelog"),
        ([*REMEMBER, "PartitionWriter.put (streams/adapters/lexical/writer.py:97)"], "lexical index"),
        ([*AGENT, "Embed.write (agents/embedding/embed.py:99)"], "vector index"),
        ([*AGENT, "Embed.encode (agents/embedding/embed.py:80)"], "embedding requests"),
        ([*AGENT, "Bursts.add (streams/adapters/kafka/reply_writer.py:50)"], "events between agents"),
        ([*ROOT, "ChangelogProducer.send_row (streams/runtime/awaited_table.py:31)"], "records and changelog"),
        ([*REMEMBER, "AwaitableTable.read (streams/runtime/awaited_table.py:58)"], "records and changelog"),
        (AGENT, "acknowledgement and commits"),
    ],
)
def test_the_first_known_frame_from_the_leaf_decides_by_its_longest_pattern(frames: list[str], stage: str) -> None:
    assert stage_of(frames) == stage


def test_a_library_counts_for_the_stage_that_calls_it() -> None:
    assert stage_of([*REMEMBER, "EmbedderChild._send (streams/adapters/embedding/process/child_pipes.py:192)"]) == (
        stage_of(
            [
                *REMEMBER,
                "EmbedderChild._send (streams/adapters/embedding/process/child_pipes.py:192)",
                "StreamWriter.write (asyncio/streams.py:343)",
            ]
        )
    )


def test_a_helper_of_many_stages_counts_for_its_caller() -> None:
    helper = "until_available (streams/backoff.py:36)"
    assert stage_of([*REMEMBER, helper]) == "admission and decoding"


@pytest.mark.parametrize(
    ("frames", "stage"),
    [
        (ROOT, "asyncio and aiokafka"),
        ([*ROOT, "Sender._send_produce_req (aiokafka/producer/sender.py:288)"], "asyncio and aiokafka"),
        ([*ROOT, "Service._execute_task (mode/services.py:878)"], "Faust's own layers"),
        (
            [*ROOT, "Service._execute_task (mode/services.py:878)", "send (aiokafka/conn.py:423)"],
            "asyncio and aiokafka",
        ),
        (["_worker (concurrent/futures/thread.py:81)"], OTHER),
        ([], OTHER),
    ],
)
def test_libraries_decide_where_no_other_frame_does(frames: list[str], stage: str) -> None:
    assert stage_of(frames) == stage


def test_samples_know_their_thread() -> None:
    lines = [
        f"thread (7): MainThread;{';'.join(AGENT)} 3",
        "thread (8): Thread-1;WorkerThread.run (mode/threads.py:62);decode (aiokafka/protocol/types.py:203) 2",
        "thread (9): uvloop_0;call (streams/adapters/vectors/embedded/edge_shard.py:94) 1",
        "",
        "no count",
    ]
    assert parse_samples(lines) == [
        Sample(EVENT_LOOP, "acknowledgement and commits", 3),
        Sample(CONSUMER, "read from Kafka", 2),
        Sample(OTHER_PYTHON, "vector index", 1),
    ]


def test_each_thread_divides_its_own_time() -> None:
    samples = [
        Sample(EVENT_LOOP, "ranking", 1),
        Sample(EVENT_LOOP, "reply", 3),
        Sample(OTHER_PYTHON, "vector index", 1),
    ]
    costs = stage_costs(samples, {EVENT_LOOP: 4.0, OTHER_PYTHON: 0.5, CONSUMER: 0.25, NATIVE: 9.0})

    assert list(costs) == list(STAGES)
    assert {stage: ms for stage, ms in costs.items() if ms} == {
        "ranking": 1.0,
        "reply": 3.0,
        "vector index": 0.5,
        OTHER: 0.25,
    }


def test_a_thread_without_samples_counts_as_other() -> None:
    assert stage_costs([], {EVENT_LOOP: 4.0})[OTHER] == 4.0
