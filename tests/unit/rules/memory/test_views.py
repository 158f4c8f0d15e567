"""Memories and modes as commands return them."""

import json

from modestream_client.hits import Evidence

from agents.rules.memory.views import build_memory_view, build_mode_view
from schemas.state.interaction import Interaction
from schemas.state.memories import TextVersion, TurnUnderstanding
from schemas.state.modes import Mode, ModeDeclarations
from tests.builders.memories import START, embedded_in, made

MEMORY = made(
    "cello",
    mode="code",
    mode_source="model",
    versions=(TextVersion(text_hash="a", first_seen=START), TextVersion(text_hash="b", first_seen=START)),
    current=1,
    embedding=embedded_in("s1", "code"),
    evidence=(Evidence(turn_id="t-0", start=0, end=5),),
    reading=TurnUnderstanding(
        status="model",
        text_hash="b",
        topic="music",
        intent="learn",
        operation="play",
        times=("2026-03-01",),
        interaction=Interaction(mode="LEARNING", confidence=0.87654),
        model="small",
        prompt="understand-1",
    ),
)


def test_memory_view_hides_internal_fields() -> None:
    shown = build_memory_view(MEMORY)
    assert (shown["text"], shown["mode"], shown["mode_source"]) == ("cello", "code", "model")
    assert shown["scope"] == {"user_id": "ana", "project_id": "default"}
    assert shown["evidence"] == [{"turn_id": "t-0", "start": 0, "end": 5}]
    assert shown["embedding"]["status"] == "ready"
    assert shown["embedding"]["place"] == {"mode": "code", "space": "s1"}
    assert shown["occurred_at"] == "2026-02-01T10:00:00Z"
    assert not shown.keys() & {"boundary", "source", "latest", "latest_at", "current", "reading", "text_hash"}


def test_versions_are_numbered_and_the_current_one_marked() -> None:
    shown = build_memory_view(MEMORY)
    assert shown["version"] == 2
    assert [(one["version"], one["current"], one["text_hash"]) for one in shown["versions"]] == [
        (1, False, "a"),
        (2, True, "b"),
    ]


def test_understanding_is_flattened_into_the_view() -> None:
    shown = build_memory_view(MEMORY)
    assert {name: shown[name] for name in ("topic", "intent", "operation", "times", "model", "prompt")} == {
        "topic": "music",
        "intent": "learn",
        "operation": "play",
        "times": ["2026-03-01"],
        "model": "small",
        "prompt": "understand-1",
    }
    assert (shown["understanding"], shown["interaction_mode"], shown["interaction_confidence"]) == (
        "model",
        "LEARNING",
        0.877,
    )


def test_pending_understanding_is_shown() -> None:
    shown = build_memory_view(made("cello", reading=TurnUnderstanding(status="pending")))
    assert (shown["understanding"], shown["interaction_mode"], shown["interaction_confidence"]) == (
        "pending",
        None,
        None,
    )


def test_view_is_json_serialisable() -> None:
    assert json.loads(json.dumps(build_memory_view(MEMORY)))["text"] == "cello"


def test_mode_view_has_dimension_and_default() -> None:
    mode = Mode(name="code", embedder="tiny32", embedding_dim=32, formerly=("old",))
    declared = ModeDeclarations(modes=(mode,), user_default="code", project_defaults={"p2": "general"})
    shown = build_mode_view(mode, declared, "p1")
    assert (shown["name"], shown["embedder"], shown["embedding_dim"], shown["is_default"]) == (
        "code",
        "tiny32",
        32,
        True,
    )
    assert build_mode_view(mode, declared, "p2")["is_default"] is False
    assert "formerly" not in shown
    assert json.loads(json.dumps(shown)) == shown
