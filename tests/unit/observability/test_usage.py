import pytest
from prometheus_client import CollectorRegistry

from streams.observability import metrics
from streams.observability.metrics import Meters, Usage


def test_share_without_counts_is_none() -> None:
    shares = Usage(CollectorRegistry())()
    names = ("cross_mode_share", "model_agreement", "worker_corrections_per_hundred")
    assert [shares[name] for name in names] == [None, None, None]


def test_shares_are_ratios_of_counts() -> None:
    usage = Usage(CollectorRegistry())
    for _ in range(8):
        usage.decided("fallback")
    usage.corrected()
    usage.retrieved("u1", "hybrid")
    usage.retrieved("u1", "lexical")
    usage.retrieved("u1", "cross_mode")
    usage.model_answered("u1", agrees=True)
    usage.model_answered("u1", agrees=False)
    assert usage() == {
        "cross_mode_share": 0.3333,
        "model_agreement": 0.5,
        "worker_corrections_per_hundred": 12.5,
        "worker": {
            "turns": 8,
            "corrections": 1,
            "questions": 3,
            "cross_mode_questions": 1,
            "model_answers": 2,
            "model_agreements": 1,
        },
    }


def test_each_user_has_its_own_counts() -> None:
    usage = Usage(CollectorRegistry())
    usage.retrieved("u1", "cross_mode")
    usage.retrieved("u1", "hybrid")
    usage.model_answered("u2", agrees=True)
    assert usage.of("u1") == {"questions": 2, "cross_mode_questions": 1, "model_answers": 0, "model_agreements": 0}
    assert usage.of("u2")["questions"] == 0
    assert usage.of("u2")["model_agreements"] == 1


def test_users_that_are_counted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_COUNTED_USERS", 2)
    usage = Usage(CollectorRegistry())
    for user in ("u1", "u2", "u1", "u3"):
        usage.retrieved(user, "hybrid")
    assert [usage.of(user)["questions"] for user in ("u1", "u2", "u3")] == [2, 0, 1]


def test_share_of_zero_agreement_is_zero() -> None:
    usage = Usage(CollectorRegistry())
    usage.model_answered("u1", agrees=False)
    assert usage()["model_agreement"] == 0.0


def test_metrics_have_sources_agreement_and_strategies() -> None:
    meters = Meters()
    meters.usage.decided("caller")
    meters.usage.decided("caller")
    meters.usage.model_answered("u1", agrees=True)
    meters.usage.retrieved("u1", "cross_mode")
    meters.usage.corrected()
    counts = [
        meters.registry.get_sample_value(f"modestream_{name}_total", labels)
        for name, labels in {
            "modes_decided": {"source": "caller"},
            "model_modes": {"agrees": "true"},
            "retrieved": {"strategy": "cross_mode"},
            "corrections": {},
        }.items()
    ]
    assert counts == [2, 1, 1, 1]
