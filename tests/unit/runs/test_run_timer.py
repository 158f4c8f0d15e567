"""Marks time steps within a run, and nothing outside of one."""

import asyncio

import pytest

from agents.ports.clock import MAX_STEPS, ModelCall, RunTimer, current_run, step


def test_steps_are_noted_within_a_run_alone() -> None:
    timer = RunTimer()
    with step("retrieve.recall"):
        pass
    with timer, step("retrieve.rank"):
        pass
    with step("retrieve.recall"):
        pass
    [(name, began, ended)] = timer.steps
    assert name == "retrieve.rank"
    assert timer.began <= began <= ended


def test_a_failed_step_is_noted_and_its_failure_goes_on() -> None:
    timer = RunTimer()
    with pytest.raises(KeyError), timer, step("retrieve.rank"):
        raise KeyError
    assert [name for name, _, _ in timer.steps] == ["retrieve.rank"]
    assert current_run() is None


def test_a_run_has_a_bounded_number_of_steps_and_calls() -> None:
    timer = RunTimer()
    with timer:
        for _ in range(MAX_STEPS + 5):
            with step("evolve.merge"):
                timer.add_model(ModelCall("evolve.summarise", 0, 1))
    assert len(timer.steps) == MAX_STEPS
    assert len(timer.models) == MAX_STEPS
    assert timer.omitted == 10


async def test_concurrent_runs_do_not_mix() -> None:
    async def run(name: str) -> RunTimer:
        timer = RunTimer()
        with timer:
            for _ in range(3):
                with step(name):
                    await asyncio.sleep(0)
        return timer

    timers = await asyncio.gather(run("one"), run("two"))
    assert [{name for name, _, _ in timer.steps} for timer in timers] == [{"one"}, {"two"}]
