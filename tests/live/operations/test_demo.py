"""The demo over a real broker, with a stand-in that stores turns and finds the latest one."""

import secrets
from collections.abc import Sequence
from typing import Any

from streams.demo.script import run_demo
from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.stand_in import Json, ReceivedRecord, error, ok, reply_by_contract, standing_in

CONTEXT: Json = {
    "messages": [{"role": "user", "content": "Memories follow."}],
    "references": ["m1"],
    "sections": {"recent_window": ["m1"]},
    "interaction_mode": "DEBUGGING",
    "interaction_confidence": 0.93,
    "budget": {},
    "tokens": {"total": 256},
}


class Notebook:
    """Stores turns by id, embeds one at each `health` command and finds the latest turn."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.modes: dict[str, str] = {}
        self.latest: Json = {}
        self.pending = 0

    def __call__(self, seen: ReceivedRecord) -> Sequence[Json]:
        if seen.topic == "turns":
            return [ok(self.keep(seen.value))]
        if seen.value["schema"] == "command.v1":
            return [ok(self.carry_out(seen.value["command"], seen.value["arguments"]))]
        return [ok(self.find() if seen.value["schema"] == "retrieve.v1" else CONTEXT)]

    def carry_out(self, command: str, arguments: Json) -> Json:
        if command == "declare_mode":
            return {name: value for name, value in arguments.items() if value is not None} | {"embedding_dim": 384}
        if command == "set_memory_mode":
            self.modes[arguments["memory_id"]] = arguments["mode"]
            return self.whole()
        return self.health() if command == "health" else self.whole()

    def whole(self) -> Json:
        [hit] = self.find()["hits"]
        resources = [{"uri": "a://b", "text": "0123 the caption"}]
        mode = self.modes[self.latest["turn_id"]]
        return {**hit, "mode": mode, "resources": resources, "embedding": {"status": "ready"}}

    def keep(self, turn: Json) -> Json:
        texts = self.texts.setdefault(turn["turn_id"], [])
        duplicate = texts[-1:] == [turn["content"]]
        if not duplicate:
            texts.append(turn["content"])
            self.pending = 2
        self.latest = turn
        result = {"memory_id": turn["turn_id"], "turn_id": turn["turn_id"], "version": len(set(texts))}
        mode = self.modes.setdefault(turn["turn_id"], turn["mode"] or "general")
        return {**result, "mode": mode, "mode_source": "fallback", "duplicate": duplicate}

    def health(self) -> Json:
        left, self.pending = self.pending, max(0, self.pending - 1)
        general = {"eligible": len(self.texts) - 5, "pending": 0, "ready": len(self.texts) - 5}
        return {"modes": {"general": general, "journal": {"eligible": 5, "pending": left, "ready": 5 - left}}}

    def find(self) -> Json:
        turn = self.latest
        same = {name: turn[name] for name in ("turn_id", "conversation_id", "scope", "role", "speaker", "occurred_at")}
        evidence: list[Json] = [{"turn_id": turn["turn_id"], "start": 0, "end": len(turn["content"])}]
        evidence.append({"turn_id": turn["turn_id"], "start": 5, "end": 16, "resource": "a://b"})
        hit: dict[str, Any] = {**same, "memory_id": "m", "text": turn["content"], "type": "episodic", "score": 0.5}
        hit |= {"mode": "general", "mode_source": "fallback", "evidence": evidence, "version": 1}
        return {"hits": [{**hit, "embedding_status": "ready"}], "modes": ["general"], "strategy": "hybrid"}


async def test_demo_publishes_waits_asks_and_knows_its_turns_again(live_broker: RunningBroker) -> None:
    async with standing_in(live_broker.bootstrap, prefix := f"test-{secrets.token_hex(4)}.") as service:
        service.behaviour = Notebook()
        first: list[str] = []
        assert await run_demo(live_broker.bootstrap, first.append, prefix) == 0
        again: list[str] = []
        assert await run_demo(live_broker.bootstrap, again.append, prefix) == 0
    assert any("41 new, 0 known" in line for line in first)
    assert "Turn diary-04 belongs to journal: it was general (fallback), is now journal." in first
    assert first.index("Embedding: 39 of 41 done.") < first.index("All are embedded.")
    assert sum(line.startswith("Question") for line in first) == 7
    assert any("from turn diary-05, characters 0 to" in line for line in first)
    assert any("a://b: “the caption”" in line for line in first)
    assert any(line.startswith("interaction mode DEBUGGING, confidence 0.93; 256 of 1000") for line in first)
    assert any("0 new, 41 known" in line for line in again)
    assert "Turn diary-04 belongs to journal: it is there already." in again


async def test_demo_fails_if_a_query_finds_nothing(live_broker: RunningBroker) -> None:
    async with standing_in(live_broker.bootstrap, prefix := f"test-{secrets.token_hex(4)}.") as service:
        notebook = Notebook()
        service.behaviour = lambda seen: (
            notebook(seen)
            if seen.value["schema"] == "command.v1" or seen.topic != "retrieve"
            else reply_by_contract(seen)
        )
        assert await run_demo(live_broker.bootstrap, lambda _: None, prefix) == 1


async def test_demo_reports_why_it_stops(live_broker: RunningBroker) -> None:
    lines: list[str] = []
    async with standing_in(live_broker.bootstrap, prefix := f"test-{secrets.token_hex(4)}.") as service:
        service.behaviour = lambda _: [error("unavailable", "the disk is full")]
        assert await run_demo(live_broker.bootstrap, lines.append, prefix) == 1
    assert lines[-1] == "The demo can't go on: unavailable: the disk is full"
