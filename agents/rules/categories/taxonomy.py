"""Declare, rename and delete categories in a scope, and merge in those of the deployment. Pure."""

from collections.abc import Mapping

from schemas.failures import Rejected
from schemas.state.categories import Category, Taxonomy

MAX_CATEGORIES_PER_SCOPE = 256
"""Categories of a scope; docs/contract.md sets no limit. Each item is compared with all of them, and all are one record
of the table, which must stay below Kafka's record size."""


MAX_FORMER_NAMES = 32
"""Earlier names that a category remembers, the latest, for records that still have one."""


def declare_category(taxonomy: Taxonomy, name: str, description: str, offset: int = -1) -> Taxonomy:
    """Add or redescribe a user's category; idempotent. `offset` is the command's.

    Raises Rejected, `too_large`, beyond `MAX_CATEGORIES_PER_SCOPE`.
    """
    before = taxonomy.find(name)
    if before is None and len(taxonomy) >= MAX_CATEGORIES_PER_SCOPE:
        message = f"a scope has at most {MAX_CATEGORIES_PER_SCOPE} categories (MAX_CATEGORIES_PER_SCOPE); delete one"
        raise Rejected("too_large", message, "arguments.name")
    if before is None:
        return taxonomy.with_categories(Category(name=name, description=description, declared=True, since=offset))
    if before.declared and before.description == description:
        return taxonomy
    version = before.version + (before.description != description)
    changes = {"description": description, "version": version, "declared": True, "since": offset}
    return taxonomy.with_categories(before.model_copy(update=changes))


def rename_category(taxonomy: Taxonomy, name: str, new_name: str, offset: int) -> tuple[Taxonomy, Category]:
    """Rename a category, which is the user's own from then on; the same command again changes nothing.

    Raises Rejected, `not_found` or `conflict`.
    """
    old, new = taxonomy.find(name), taxonomy.find(new_name)
    if old is None:
        if new is not None and name in new.formerly:
            return taxonomy, new
        raise unknown_category_error()
    if name == new_name:
        return taxonomy, old
    if new is not None:
        raise Rejected(
            "conflict", "this scope has a category of the new name; delete one of the two", "arguments.new_name"
        )
    formerly = tuple(one for one in (*old.formerly, name) if one != new_name)[-MAX_FORMER_NAMES:]
    changes = {"name": new_name, "formerly": formerly, "version": old.version + 1, "declared": True, "since": offset}
    renamed = old.model_copy(update=changes)
    return taxonomy.without(name, offset).with_categories(renamed), renamed


def delete_category(taxonomy: Taxonomy, name: str, offset: int) -> tuple[Taxonomy, Category]:
    """Delete a category of the user or of the deployment in this scope; returns what it was.

    A redelivered command, known by its offset, finds nothing left and changes nothing. Raises Rejected, `not_found`.
    """
    category = taxonomy.find(name)
    if category is not None:
        return taxonomy.without(name, offset), category
    if taxonomy.deleted.get(name) == offset:
        return taxonomy, Category(name=name, declared=True)
    raise unknown_category_error()


def forget_categories(taxonomy: Taxonomy, offset: int) -> Taxonomy:
    """Keep only what commands after this offset have declared or deleted."""
    kept = {one.name: one for one in taxonomy.all() if one.declared and one.since > offset}
    deleted = {name: at for name, at in taxonomy.deleted.items() if at > offset}
    return Taxonomy(categories=kept, deleted=deleted)


def unknown_category_error() -> Rejected:
    """Return the error for a name that the scope does not have."""
    return Rejected("not_found", "this scope has no category of that name", "arguments.name")


def merge_deployment_categories(stored: Taxonomy, deployment: Mapping[str, str]) -> Taxonomy:
    """Merge the deployment's current categories, descriptions by name, into a scope's stored ones.

    A category that a user declared under the same name wins, and one that a user deleted stays away. One that the
    deployment dropped is removed.
    """
    own = {one.name: one for one in stored.all() if one.declared}
    others = {name: text for name, text in deployment.items() if name not in own and name not in stored.deleted}
    named = {name: _described(stored.find(name), name, text) for name, text in others.items()}
    return stored.model_copy(update={"categories": named | own})


def _described(before: Category | None, name: str, description: str) -> Category:
    if before is None:
        return Category(name=name, description=description)
    return before if before.description == description else before.model_copy(update={"description": description})
