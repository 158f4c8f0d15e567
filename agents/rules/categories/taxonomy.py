"""Declare categories in a scope, and merge in those of the deployment. Pure."""

from collections.abc import Mapping

from schemas.failures import Rejected
from schemas.state.categories import Category, Taxonomy

MAX_CATEGORIES_PER_SCOPE = 256
"""Categories of a scope; docs/contract.md sets no limit. Each item is compared with all of them, and all are one record
of the table, which must stay below Kafka's record size."""


def declare_category(taxonomy: Taxonomy, name: str, description: str) -> Taxonomy:
    """Add or redescribe a user's category; idempotent.

    Raises Rejected, `invalid_value`, beyond `MAX_CATEGORIES_PER_SCOPE`.
    """
    before = taxonomy.find(name)
    if before is None and len(taxonomy) >= MAX_CATEGORIES_PER_SCOPE:
        message = f"a scope has at most {MAX_CATEGORIES_PER_SCOPE} categories; redeclare an existing one instead"
        raise Rejected("invalid_value", message, "arguments.name")
    if before is None:
        return taxonomy.with_categories(Category(name=name, description=description, declared=True))
    if before.declared and before.description == description:
        return taxonomy
    version = before.version + (before.description != description)
    changes = {"description": description, "version": version, "declared": True}
    return taxonomy.with_categories(before.model_copy(update=changes))


def merge_deployment_categories(stored: Taxonomy, deployment: Mapping[str, str]) -> Taxonomy:
    """Merge the deployment's current categories, descriptions by name, into a scope's stored ones.

    A category that a user declared under the same name wins; one that the deployment dropped is removed.
    """
    own = {one.name: one for one in stored.all() if one.declared}
    named = {name: _described(stored.find(name), name, text) for name, text in deployment.items() if name not in own}
    return Taxonomy(categories=named | own)


def _described(before: Category | None, name: str, description: str) -> Category:
    if before is None:
        return Category(name=name, description=description)
    return before if before.description == description else before.model_copy(update={"description": description})
