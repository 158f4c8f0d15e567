"""Turns wait until Kafka has them: in order, once, within bounds."""

import asyncio
from collections.abc import Iterable

import pytest

from gateway.openai import memory as module
from gateway.openai.memory import BYTES_BESIDE_TEXT, Outbox
from gateway.service.calls import Call, Caller, Refused, unavailable
from gateway.service.meters import Meters
from gateway.service.turns import Turn

ANYBODY = Caller(is_operator=True)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0)
    monkeypatch.setattr(module, "DRAIN_S", 0.05)


class Kafka:
    """Takes turns; fails with what is prepared first."""

    def __init__(self, failures: Iterable[Exception] = ()) -> None:
        self.taken: list[tuple[str, str]] = []
        self._failures = iter(failures)

    async def publish(self, call: Call, turn: Turn) -> None:
        await asyncio.sleep(0)
        if (failure := next(self._failures, None)) is not None:
            raise failure
        self.taken.append((call.user_id, turn.fields["content"]))

    async def until(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.taken) < count:
                await asyncio.sleep(0)


def turn(text: str) -> Turn:
    return Turn({}, {"content": text})


def waiting(meters: Meters) -> float | None:
    return meters.registry.get_sample_value("modestream_gateway_openai_waiting")


def outcomes(meters: Meters, outcome: str) -> float | None:
    return meters.registry.get_sample_value("modestream_gateway_openai_turns_total", {"outcome": outcome})


async def test_turns_of_a_user_go_in_order() -> None:
    kafka, outbox = Kafka([unavailable()] * 3), Outbox(Meters())
    async with outbox.sending(kafka.publish):
        for number in range(5):
            outbox.keep(ANYBODY, "u1", "r", [turn(f"{number}")])
        await kafka.until(5)
    assert kafka.taken == [("u1", f"{number}") for number in range(5)]


async def test_a_turn_is_sent_again_until_kafka_has_it() -> None:
    meters = Meters()
    kafka, outbox = Kafka([unavailable(), Refused("timeout", "late"), unavailable()]), Outbox(meters)
    async with outbox.sending(kafka.publish):
        outbox.keep(ANYBODY, "u1", "r", [turn("x")])
        await kafka.until(1)
    assert kafka.taken == [("u1", "x")]
    assert waiting(meters) == 0
    assert outcomes(meters, "stored") == 1


@pytest.mark.parametrize("failure", [Refused("not_allowed", "no"), ValueError("odd")])
async def test_a_turn_that_will_never_be_taken_delays_no_other(failure: Exception) -> None:
    meters = Meters()
    kafka, outbox = Kafka([failure]), Outbox(meters)
    async with outbox.sending(kafka.publish):
        outbox.keep(ANYBODY, "u1", "r", [turn("x"), turn("y")])
        await kafka.until(1)
    assert kafka.taken == [("u1", "y")]
    assert outcomes(meters, "refused") == 1


async def test_what_was_not_sent_goes_to_the_next_deployment() -> None:
    meters = Meters()
    outbox, away, kafka = Outbox(meters), Kafka(iter(unavailable, None)), Kafka()
    async with outbox.sending(away.publish):
        outbox.keep(ANYBODY, "u1", "r", [turn("x")])
    assert waiting(meters) == 1
    async with outbox.sending(kafka.publish):
        await kafka.until(1)
    assert kafka.taken == [("u1", "x")]
    assert waiting(meters) == 0


async def test_what_waits_goes_before_the_end() -> None:
    kafka, outbox = Kafka(), Outbox(Meters())
    async with outbox.sending(kafka.publish):
        outbox.keep(ANYBODY, "u1", "r", [turn("x")])
    assert kafka.taken == [("u1", "x")]


async def test_a_turn_without_room_is_dropped() -> None:
    meters = Meters()
    outbox = Outbox(meters, max_bytes=2 * BYTES_BESIDE_TEXT)
    outbox.keep(ANYBODY, "u1", "r", [turn("x"), turn("y")])
    assert waiting(meters) == 1
    assert outcomes(meters, "dropped") == 1


async def test_a_key_leaves_room_to_others() -> None:
    meters = Meters()
    outbox = Outbox(meters, max_bytes=8 * BYTES_BESIDE_TEXT)
    for name in ("k1", "k2"):
        outbox.keep(Caller(name, "app"), "u1", "r", [turn("x")] * 3)
    assert waiting(meters) == 2
    assert outcomes(meters, "dropped") == 4


async def test_what_is_sent_makes_room() -> None:
    kafka, outbox = Kafka(), Outbox(Meters(), max_bytes=2 * BYTES_BESIDE_TEXT)
    async with outbox.sending(kafka.publish):
        for number in range(3):
            outbox.keep(ANYBODY, "u1", "r", [turn("x")])
            await kafka.until(number + 1)
            await asyncio.sleep(0)
    assert len(kafka.taken) == 3
