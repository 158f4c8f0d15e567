"""Usage of modes."""

from prometheus_client import CollectorRegistry

from streams.observability.metrics import Meters, Usage


def test_share_without_counts_is_none() -> None:
    assert Usage(CollectorRegistry())() == {
        "cross_mode_share": None,
        "model_agreement": None,
        "worker_corrections_per_hundred": None,
    }


def test_shares_are_ratios_of_counts() -> None:
    usage = Usage(CollectorRegistry())
    for _ in range(8):
        usage.decided("fallback")
    usage.corrected()
    usage.retrieved("hybrid")
    usage.retrieved("lexical")
    usage.retrieved("cross_mode")
    usage.model_answered(agrees=True)
    usage.model_answered(agrees=False)
    assert usage() == {"cross_mode_share": 0.3333, "model_agreement": 0.5, "worker_corrections_per_hundred": 12.5}


def test_share_of_zero_agreement_is_zero() -> None:
    usage = Usage(CollectorRegistry())
    usage.model_answered(agrees=False)
    assert usage()["model_agreement"] == 0.0


def test_metrics_have_sources_agreement_and_strategies() -> None:
    meters = Meters()
    meters.usage.decided("caller")
    meters.usage.decided("caller")
    meters.usage.model_answered(agrees=True)
    meters.usage.retrieved("cross_mode")
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
