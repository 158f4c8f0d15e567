"""Dashboards and alerts are valid, and name the metrics and labels that workers and gateways serve."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import promql_parser
import pytest
import yaml  # type: ignore[import-untyped]
from modestream_client.vocabulary import Strategy
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from agents.rules.interaction.stability import FALLBACK_REASONS
from gateway.service.meters import LIMITS
from gateway.service.meters import Meters as GatewayMeters
from schemas.failures import ErrorCode
from schemas.internal.events import Embedded
from streams.observability.metrics import Meters, ModelMeters
from streams.topics import topics_with_prefix
from streams.up.fleet import WORKER_UP

ROOT = Path(__file__).parents[3]
DASHBOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
RULES = ROOT / "deploy/prometheus/alerts.yaml"
RUNBOOK = ROOT / "docs/runbook.md"

OF_A_TARGET = {"instance", "job"}
"""The labels that Prometheus adds to each sample."""

VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}
"""What Grafana puts into a query, as an example."""

SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
"""The names of the series of a metric."""

VALUES: dict[str, tuple[str, ...]] = {
    "agrees": ("true", "false"),
    "code": get_args(ErrorCode),
    "failure": ("timeout", "not_written", "unreachable", "closed", "internal", "unavailable"),
    "job": ("modestream-worker", "modestream-gateway"),
    "limit": LIMITS,
    "outcome": ("valid", "repaired", "unanswerable"),
    "reason": FALLBACK_REASONS,
    "status": (*get_args(Embedded.model_fields["status"].annotation), "5.."),
    "strategy": get_args(Strategy),
    "topic": ("retrieve",),
}
"""The values of labels that a query may select by."""


@cache
def served() -> dict[str, set[str]]:
    """The labels of each series by its name, and of `up`, which Prometheus makes.

    `worker` is empty where a worker serves its own page, and its number on the page of several.
    """
    worker = Meters()
    ModelMeters(worker.registry)
    labels: dict[str, set[str]] = {"up": set(), WORKER_UP: {"worker"}}
    labels |= {name: {*own, "worker"} for name, own in series(worker.registry).items()}
    return labels | series(GatewayMeters().registry)


def series(registry: CollectorRegistry) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for collector in set(registry._names_to_collectors.values()):
        metric: Any = collector
        if isinstance(collector, ProcessCollector):
            found |= {family.name: set() for family in collector.collect()}
            continue
        for suffix in SUFFIXES[metric._type]:
            found[metric._name + suffix] = {*metric._labelnames, *(["le"] if suffix == "_bucket" else [])}
    return found


def panels() -> Iterator[tuple[str, str, str]]:
    """The title, query and legend of every series of every panel."""
    for file in DASHBOARDS:
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", []):
                yield f"{file.stem}: {panel['title']}", target["expr"], target["legendFormat"]


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def parsed(query: str) -> promql_parser.Expr:
    for name, example in VARIABLES.items():
        query = query.replace(name, example)
    return promql_parser.parse(query)


def nodes(query: promql_parser.Expr, kind: type[Any]) -> list[Any]:
    found: list[Any] = []
    promql_parser.walk(query, lambda node: found.append(node) if isinstance(node, kind) else None)
    return found


def labels_of(query: promql_parser.Expr) -> set[str]:
    selectors = nodes(query, promql_parser.VectorSelector)
    return set.intersection(*(served()[selector.name] for selector in selectors)) | OF_A_TARGET


QUERIES = [(title, query) for title, query, _ in panels()] + [(alert["alert"], alert["expr"]) for alert in alerts()]


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_query_names_served_metrics_and_labels(title: str, query: str) -> None:
    expression = parsed(query)
    for selector in nodes(expression, promql_parser.VectorSelector):
        assert selector.name in served(), title
        for matcher in selector.matchers.matchers:
            assert matcher.name in served()[selector.name] | OF_A_TARGET, title
            if matcher.name != "instance":
                assert set(matcher.value.split("|")) <= set(VALUES[matcher.name]), title
    for aggregate in nodes(expression, promql_parser.AggregateExpr):
        if aggregate.modifier is not None:
            assert set(aggregate.modifier.labels) <= labels_of(aggregate.expr), title


def test_every_metric_is_on_a_dashboard() -> None:
    shown = {str(selector.name) for _, query, _ in panels() for selector in selectors_of(query)}
    own = [name for name in served() if name.startswith("modestream_")]
    stems = {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in own}
    assert {stem for stem in stems if not any(name.startswith(stem) for name in shown)} == set()


def selectors_of(query: str) -> list[promql_parser.VectorSelector]:
    return nodes(parsed(query), promql_parser.VectorSelector)


@pytest.mark.parametrize(("title", "query", "legend"), list(panels()))
def test_legend_names_labels_of_its_query(title: str, query: str, legend: str) -> None:
    assert grouped(query) >= set(re.findall(r"{{(\w+)}}", legend)) - OF_A_TARGET, title


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_alert_says_how_urgent_it_is_and_names_its_labels(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"])) <= grouped(alert["expr"]) | OF_A_TARGET


def grouped(query: str) -> set[str]:
    found = nodes(parsed(query), promql_parser.AggregateExpr)
    return {label for operation in found if operation.modifier is not None for label in operation.modifier.labels}


def test_each_alert_has_its_entry_in_the_run_book() -> None:
    entries = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert entries == [alert["alert"] for alert in alerts()]


def test_each_entry_says_what_it_means_and_what_to_do() -> None:
    for entry in RUNBOOK.read_text().split("\n## ")[1:]:
        assert [part for part in ("**Means**", "**Look**", "**Do**") if part not in entry] == [], entry


def test_run_book_names_served_metrics() -> None:
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in served()}
    assert set(re.findall(r"`(modestream_\w+)`", RUNBOOK.read_text())) <= known


def counted() -> list[tuple[str, promql_parser.VectorSelector]]:
    """The series of which an alert asks how much they have grown, with the alert."""
    calls = [(alert["alert"], call) for alert in alerts() for call in nodes(parsed(alert["expr"]), promql_parser.Call)]
    return [
        (alert, selector)
        for alert, call in calls
        if call.func.name == "increase"
        for selector in nodes(call, promql_parser.VectorSelector)
    ]


@pytest.mark.parametrize(("alert", "selector"), counted())
def test_counted_series_are_there_before_the_first_event(alert: str, selector: promql_parser.VectorSelector) -> None:
    """Prometheus sees no increase of a series that begins with 1."""
    wanted = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
    page = "".join(generate_latest(registry).decode() for registry in fresh_registries())
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    values = [
        sample.value for sample in samples if sample.name == selector.name and wanted.items() <= sample.labels.items()
    ]
    assert values, alert
    assert set(values) == {0}


def fresh_registries() -> tuple[CollectorRegistry, CollectorRegistry]:
    """Of a worker and a gateway that have just started."""
    worker, topics = Meters(), topics_with_prefix("memory.")
    worker.begin(topics.inputs(), set(topics.consumed()) - topics.inputs())
    return worker.registry, GatewayMeters().registry


def test_input_topics_have_every_error_code_from_the_start() -> None:
    worker, _ = fresh_registries()
    [rejected] = [family for family in worker.collect() if family.name == "modestream_rejected"]
    codes = {sample.labels["code"] for sample in rejected.samples if sample.labels["topic"] == "memory.turns"}
    assert codes == set(get_args(ErrorCode))


def test_panels_have_ids_and_places_of_their_own() -> None:
    for file in DASHBOARDS:
        dashboard = json.loads(file.read_text())
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
        assert len(places) == len(set(places)) == len({panel["id"] for panel in dashboard["panels"]})
