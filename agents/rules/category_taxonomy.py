"""The categories of a scope out of those that its user declared and those of the deployment. Pure."""

from collections.abc import Mapping

from schemas.categories import Category, Taxonomy


def declared(taxonomy: Taxonomy, name: str, description: str) -> Taxonomy:
    """The taxonomy with a category as its user describes it from now on; the same again changes nothing."""
    before = taxonomy.find(name)
    if before is None:
        return taxonomy.having(Category(name=name, description=description, declared=True))
    if before.declared and before.description == description:
        return taxonomy
    version = before.version + (before.description != description)
    return taxonomy.having(before.model_copy(update={"description": description, "version": version, "declared": True}))


def with_deployment(kept: Taxonomy, deployment: Mapping[str, str]) -> Taxonomy:
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
