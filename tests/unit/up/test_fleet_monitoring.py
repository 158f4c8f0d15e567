"""One page of metrics of several workers."""

from prometheus_client.parser import text_string_to_metric_families

from streams.observability.metrics import Meters
from streams.up.fleet import merge_pages


def page(settled: int) -> str:
    meters = Meters()
    meters.settled(settled)
    meters.rejected("turns", 'odd"code')
    meters.retrieve_seconds.observe(0.01)
    return meters.exposition().decode()


def test_every_family_is_there_once_with_the_series_of_all_workers() -> None:
    merged = merge_pages({"1": page(3), "2": page(4)})
    families = list(text_string_to_metric_families(merged))
    heads = [line for line in merged.splitlines() if line.startswith("#")]
    assert len(heads) == len(set(heads)) == 2 * len(families)
    settled = next(family for family in families if family.name == "modestream_settled")
    totals = {
        sample.labels["worker"]: sample.value for sample in settled.samples if sample.name == "modestream_settled_total"
    }
    assert totals == {"1": 3.0, "2": 4.0}


def test_merged_page_has_what_each_page_has() -> None:
    alone = list(text_string_to_metric_families(page(3)))
    merged = {family.name: family for family in text_string_to_metric_families(merge_pages({"1": page(3)}))}
    for family in alone:
        found = merged[family.name]
        assert found.type == family.type
        assert found.documentation == family.documentation
        own = [{**sample.labels, "worker": "1"} for sample in family.samples]
        assert [dict(sample.labels) for sample in found.samples] == own


def test_worker_without_an_answer_is_down() -> None:
    families = text_string_to_metric_families(merge_pages({"1": page(3), "2": None}))
    up = next(family for family in families if family.name == "modestream_worker_up")
    assert {sample.labels["worker"]: sample.value for sample in up.samples} == {"1": 1.0, "2": 0.0}
