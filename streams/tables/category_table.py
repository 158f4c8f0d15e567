"""The table `categories`: the taxonomy of each scope, as readable JSON under the scope's values (`user/project`)."""

from collections.abc import Mapping
from functools import partial

from agents.rules.categories.taxonomy import merge_deployment_categories
from schemas.categories import Taxonomy
from streams.runtime.kafka_app import App
from streams.tables.intention_table import scope_key
from streams.tables.json_table import JsonTable

MAX_PARSED_TAXONOMIES = 1024
"""Taxonomies that are cached parsed, as every item reads one: some megabytes."""


class CategoryTable(JsonTable[Mapping[str, str], Taxonomy]):
    """Taxonomies by scope. The deployment's categories are in every scope, also in scopes without a row."""

    def __init__(self, app: App, deployment: Mapping[str, str]) -> None:
        """`deployment`: the descriptions of the deployment's categories by name."""
        complete = partial(merge_deployment_categories, deployment=deployment)
        super().__init__(app, "categories", Taxonomy, scope_key, max_parsed=MAX_PARSED_TAXONOMIES, complete=complete)
