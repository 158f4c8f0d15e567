"""The categories of a scope out of those that its user declared and those of the deployment. Pure."""

from collections.abc import Mapping

from schemas.categories import Category, Taxonomy
from schemas.failures import Rejected

MAX_CATEGORIES_PER_SCOPE = 256
"""Categories of a scope: ours, the contract sets none. Each item is held against all of them, and all are one record of
the table, which must stay below what Kafka takes."""


def declare_category(taxonomy: Taxonomy, name: str, description: str) -> Taxonomy:
    """The taxonomy with a category as its user describes it from now on; the same again changes nothing.

    Raises Rejected, `invalid_value`, for one more than there may be.
    """
    before = taxonomy.find(name)
    if before is None and len(taxonomy) >= MAX_CATEGORIES_PER_SCOPE:
        message = f"a scope has at most {MAX_CATEGORIES_PER_SCOPE} categories; describe one of them anew"
        raise Rejected("invalid_value", message, "arguments.name")
    if before is None:
        return taxonomy.with_categories(Category(name=name, description=description, declared=True))
    if before.declared and before.description == description:
        return taxonomy
    version = before.version + (before.description != description)
    return taxonomy.with_categories(
        before.model_copy(update={"description": description, "version": version, "declared": True})
    )


def merge_deployment_categories(kept: Taxonomy, deployment: Mapping[str, str]) -> Taxonomy:
    """What is kept of a scope with the deployment's categories as they are named today.

    What a user declared under the same name stays his; what the deployment does not name any more is gone.
    """
    own = {one.name: one for one in kept.all() if one.declared}
    named = {name: _described(kept.find(name), name, text) for name, text in deployment.items() if name not in own}
    return Taxonomy(categories=named | own)


def _described(before: Category | None, name: str, description: str) -> Category:
    if before is None:
        return Category(name=name, description=description)
    return before if before.description == description else before.model_copy(update={"description": description})
