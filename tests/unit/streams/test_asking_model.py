"""Who is asked of a language model, when, and how often."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from schemas.language import Prompt
from schemas.memories import Memory
from streams.flow import asking_model
from streams.flow.asking_model import AskingModel
from tests.one_worker import HERE, OneWorker

AT_ONCE = 3


class Home(OneWorker):
    """A worker with a language model, and the partitions that are here."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, asks_model=True)
        self.here = {HERE}
        self.busy = False
        self.declare("code", "tiny32")

    @asynccontextmanager
    async def asking(self, per_second: float = 1e6) -> AsyncIterator[AskingModel]:
        """Ask, until the block ends."""
        asking = AskingModel(
            self.understand,
            self.language,
            lambda: self.here,
            self.around,
            at_once=AT_ONCE,
            backlog_per_second=per_second,
            busy=lambda: self.busy,
        )
        running = asyncio.create_task(asking.run())
        try:
            yield asking
            assert not running.done()
        finally:
            running.cancel()

    def tells(self, number: int) -> list[Memory]:
        """Turns that are pending."""
        return [self.tell(f"crate {offset} [[code]]", offset) for offset in range(number)]

    def applied(self) -> None:
        """The keeper gets everything that was understood."""
        for event in self.understood():
            self.remember.understood(event, HERE)

    def read(self) -> list[str]:
        """The texts that answers came for, sorted."""
        texts = {memory.memory_id: memory.text for memory in self.memories.all()}
        return sorted(texts[event.memory_id] for event in self.understood())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def turns_of_the_loop(number: int = 300) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are pending are looked for without a pause."""
    monkeypatch.setattr(asking_model, "LOOK_EVERY_S", 0.0)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    yield home
    home.words.close()


async def test_a_fresh_turn_is_asked_about_and_the_keeper_told(home: Home) -> None:
    async with home.asking() as asking:
        [memory] = home.tells(1)
        asking.ask(HERE, memory)
        await until(lambda: bool(home.understood()))
    [said] = home.understood()
    assert said.found is not None
    assert (said.memory_id, said.found.mode, said.profile) == (memory.memory_id, "code", "default")
    assert [out.key for out in home.publisher.sent] == [b"u1"]


async def test_no_more_are_asked_at_the_same_time_than_may_be(home: Home) -> None:
    home.language.released.clear()
    async with home.asking() as asking:
        for memory in home.tells(10):
            asking.ask(HERE, memory)
        await until(lambda: len(home.language.asked) == AT_ONCE)
        await turns_of_the_loop()
        assert len(home.language.asked) == AT_ONCE
        home.language.released.set()
        await until(lambda: len(home.understood()) == 10)


@pytest.mark.usefixtures("quick")
async def test_what_stands_as_pending_is_asked_about_without_being_told(home: Home) -> None:
    home.tells(5)
    async with home.asking():
        await until(lambda: len(home.understood()) == 5)
    assert home.read() == [f"crate {number} [[code]]" for number in range(5)]


@pytest.mark.usefixtures("quick")
async def test_none_is_asked_about_twice_though_it_is_fresh_and_in_the_backlog(home: Home) -> None:
    async with home.asking() as asking:
        for memory in home.tells(20):
            asking.ask(HERE, memory)
        await until(lambda: len(home.understood()) == 20)
        await turns_of_the_loop()
        assert len(home.language.asked) == 20, "also while the records do not say yet that they are read"
        home.applied()
        await turns_of_the_loop()
    assert len(home.language.asked) == 20


@pytest.mark.usefixtures("quick")
async def test_none_is_asked_about_twice_when_both_queues_waited_for_the_model(home: Home) -> None:
    home.language.become("down")
    [memory] = home.tells(1)
    async with home.asking() as asking:
        asking.ask(HERE, memory)
        await turns_of_the_loop()
        home.language.released.clear()
        home.language.become("ok")
        await turns_of_the_loop()
        home.language.released.set()
        await until(lambda: bool(home.understood()))
        await turns_of_the_loop()
    assert len(home.language.asked) == 1


@pytest.mark.usefixtures("quick")
async def test_one_that_is_under_way_is_not_begun_again(home: Home) -> None:
    home.language.released.clear()
    home.tells(1)
    async with home.asking() as asking:
        await until(lambda: len(home.language.asked) == 1)
        for memory in home.memories.all():
            asking.ask(HERE, memory)
        await turns_of_the_loop()
    assert len(home.language.asked) == 1


async def test_the_backlog_is_worked_off_at_its_rate_and_fresh_turns_do_not_wait_for_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    go_on = asyncio.Event()
    sleep = asyncio.sleep

    async def paced(seconds: float) -> None:
        if seconds == 0.25:
            pauses.append(seconds)
            await go_on.wait()
            go_on.clear()
        else:
            await sleep(0)

    backlog = home.tells(3)
    monkeypatch.setattr(asyncio, "sleep", paced)
    async with home.asking(per_second=4) as asking:
        for step in (1, 2, 3):
            async with asyncio.timeout(10):
                while len(home.understood()) < step:
                    await sleep(0.005)
            await sleep(0.02)
            assert (len(home.understood()), len(pauses)) == (step, step), "one for each pause"
            go_on.set()
        go_on.clear()
        fresh = home.tell("fresh [[code]]", 9)
        asking.ask(HERE, fresh)
        async with asyncio.timeout(10):
            while len(home.understood()) < 4:
                await sleep(0.005)
    assert home.understood()[-1].memory_id == fresh.memory_id
    assert len(backlog) == 3


@pytest.mark.usefixtures("quick")
async def test_while_the_model_is_down_nothing_is_asked_and_then_everything_once(home: Home) -> None:
    home.language.become("down")
    async with home.asking() as asking:
        for memory in home.tells(30):
            asking.ask(HERE, memory)
        await turns_of_the_loop()
        assert (home.language.asked, home.understood()) == ([], [])
        home.language.become("ok")
        await until(lambda: len(home.understood()) == 30)
        await turns_of_the_loop()
    assert len(home.language.asked) == 30


@pytest.mark.usefixtures("quick")
async def test_one_whose_call_failed_comes_again_with_the_backlog(home: Home) -> None:
    home.language.released.clear()
    home.tells(AT_ONCE)
    async with home.asking():
        await until(lambda: len(home.language.asked) == AT_ONCE)
        home.language.become("down")
        home.language.released.set()
        await turns_of_the_loop()
        assert home.understood() == []
        home.language.become("ok")
        await until(lambda: len(home.understood()) == AT_ONCE)
    assert len(home.language.asked) == 2 * AT_ONCE


@pytest.mark.usefixtures("quick")
async def test_one_that_no_answer_is_made_of_costs_the_others_nothing(home: Home) -> None:
    def answers(prompt: Prompt) -> dict[str, object]:
        if "crate 1" in prompt.user:
            raise KeyError("a defect")
        return {}

    home.language.answers = answers
    home.tells(1)
    home.tell("crate 1", 1, conversation_id="c2")
    home.tell("crate 2", 2, conversation_id="c3")
    async with home.asking():
        await until(lambda: len(home.understood()) == 2)
    assert home.read() == ["crate 0 [[code]]", "crate 2"]


@pytest.mark.usefixtures("quick")
async def test_without_the_general_embedder_an_answer_is_kept_and_not_paid_for_twice(home: Home) -> None:
    home.tells(1)
    home.embedders.model("general").outage = True
    async with home.asking():
        await until(lambda: bool(home.understood()))
    [event] = home.understood()
    assert (event.profile, event.interaction, len(home.language.asked)) == ("default", None, 1)


@pytest.mark.usefixtures("quick")
async def test_while_the_worker_is_busy_the_backlog_waits_and_fresh_turns_do_not(home: Home) -> None:
    old, fresh = home.tells(2)
    home.busy = True
    async with home.asking() as asking:
        asking.ask(HERE, fresh)
        await until(lambda: home.read() == [fresh.text])
        await turns_of_the_loop()
        assert home.read() == [fresh.text]
        home.busy = False
        await until(lambda: home.read() == sorted([old.text, fresh.text]))


@pytest.mark.usefixtures("quick")
async def test_a_partition_that_left_is_passed_over_and_asked_about_when_it_is_back(home: Home) -> None:
    [memory] = home.tells(1)
    gone = (HERE + 1) % 4
    home.here = {gone}
    async with home.asking() as asking:
        asking.ask(gone, memory)
        await turns_of_the_loop()
        assert home.language.asked == []
        home.here = {gone, HERE}
        await until(lambda: bool(home.understood()))


async def test_one_that_was_read_or_forgotten_meanwhile_is_not_asked_about(home: Home) -> None:
    read, gone = home.tells(2)
    done = read.model_copy(update={"reading": read.reading.model_copy(update={"status": "model"})})
    home.memories.put(HERE, done)
    home.memories.forget(HERE, gone.memory_id)
    home.words.remove(HERE, gone.memory_id)
    home.words.put(HERE, done)
    async with home.asking() as asking:
        asking.ask(HERE, read)
        asking.ask(HERE, gone)
        await turns_of_the_loop()
    assert home.language.asked == []


async def test_more_fresh_turns_than_may_wait_are_found_by_their_records(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_model, "MOST_FRESH", 2)
    monkeypatch.setattr(asking_model, "LOOK_EVERY_S", 0.0)
    memories = home.tells(6)
    async with home.asking() as asking:
        for memory in memories:
            asking.ask(HERE, memory)
        assert len(asking._fresh) == 2
        await until(lambda: len(home.understood()) == 6)


@pytest.mark.usefixtures("quick")
async def test_a_text_that_came_back_is_asked_about_again(home: Home) -> None:
    async with home.asking():
        for offset, text in enumerate(["violin", "cello", "violin"]):
            home.tell(text, offset, turn_id="t")
            await until(lambda: len(home.understood()) == offset + 1)  # noqa: B023
            home.applied()
    assert [memory.reading.status for memory in home.memories.all()] == ["model"]
