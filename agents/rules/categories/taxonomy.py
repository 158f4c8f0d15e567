"""Declare, rename and delete categories in a scope; their summaries, and how commands and queries see them. Pure.

A category's summary and anchors are refreshed some time after its memories change. Every reader filters a category
here first, so that forgotten, filtered, replaced and superseded memories disappear at once.

Anchors are the members nearest to the centroid (Radev, Jing, Stys and Tam, "Centroid-based summarization of multiple
documents", 2004), diversified by maximal marginal relevance (Carbonell and Goldstein, 1998). The extractive summary is
the texts of the first anchors.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from agents.rules.clustering.clustering import background_cosine, cluster_by_average_linkage, normalise_rows
from schemas.failures import Rejected
from schemas.models.vectors import Matrix
from schemas.state.categories import Category, Taxonomy
from schemas.state.memories import Memory, ReadMemory

# Suggest categories from uncategorised items, and merges and splits of existing ones. Pure; deterministic.
#
# All of it is one question: which items would average linkage put together? Of 14 invented categories of eight
# sentences (`tests/builders/categories.py`, MiniLM), 12 whose halves are two categories are merged, and none of the 91
# pairs of different ones; of these pairs under one name 78 are split rightly and 2 wrongly, and one of the single ones.

COHESION = 0.08
"""A group's minimum mean cosine, as a fraction of the way from the background cosine to 1. Single sentences are further
apart than the segments of a conversation, from which modes are suggested."""

MIN_GROUP_ITEMS = 4
"""Items of a suggested category, and of a category that is compared: fewer have no common topic yet."""

MIN_SPLIT_SHARE = 0.7
"""Share of a category's items that must be in the groups that it would be split into."""

MAX_CLUSTERED = 600
"""Items that are clustered, evenly over those given: a fifth of a second."""

Rows = Sequence[int]
"""Row numbers of a matrix of items."""


class CategoryGroups(NamedTuple):
    """Groups of items in no category, pairs of categories that are one topic, and categories of several topics."""

    found: list[list[int]]
    merges: list[tuple[str, str]]
    splits: dict[str, list[list[int]]]


def group_items(unit: Matrix, filed: Mapping[str, Rows], unfiled: Rows) -> CategoryGroups:
    """Return the groups among the items of one mode; `unit` has a row of length 1 for each.

    `filed` are the items of each category that is mostly in this mode, `unfiled` those in none.
    """
    background = background_cosine(unit)
    min_cosine = background + COHESION * (1 - background)
    compared = {name: rows for name, rows in filed.items() if len(rows) >= MIN_GROUP_ITEMS}
    return CategoryGroups(
        _groups(unit, unfiled, min_cosine),
        list(_merges(unit, compared, min_cosine)),
        dict(_splits(unit, compared, min_cosine)),
    )


MAX_CATEGORIES_PER_SCOPE = 256
"""Maximum categories of a scope; docs/contract.md sets no limit. Each item is compared with all of them, and all are
one record of the table, which must stay below Kafka's record size."""

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
    """Rename a category, which becomes the user's own; the same command again changes nothing.

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
    formerly = tuple(former for former in (*old.formerly, name) if former != new_name)[-MAX_FORMER_NAMES:]
    changes = {"name": new_name, "formerly": formerly, "version": old.version + 1, "declared": True, "since": offset}
    renamed = old.model_copy(update=changes)
    return taxonomy.without(name, offset).with_categories(renamed), renamed


def delete_category(taxonomy: Taxonomy, name: str, offset: int) -> tuple[Taxonomy, Category]:
    """Delete a category of the user or of the deployment in this scope; return its former state.

    A redelivered command, found by its offset, finds nothing left and changes nothing. Raises Rejected, `not_found`.
    """
    category = taxonomy.find(name)
    if category is not None:
        return taxonomy.without(name, offset), category
    if taxonomy.deleted.get(name) == offset:
        return taxonomy, Category(name=name, declared=True)
    raise unknown_category_error()


def forget_categories(taxonomy: Taxonomy, offset: int) -> Taxonomy:
    """Keep only declarations and deletions by commands after this offset."""
    later = {category.name: category for category in taxonomy.all() if category.declared and category.since > offset}
    deleted = {name: at for name, at in taxonomy.deleted.items() if at > offset}
    return Taxonomy(categories=later, deleted=deleted)


def unknown_category_error() -> Rejected:
    return Rejected("not_found", "this scope has no category of that name", "arguments.name")


def merge_deployment_categories(stored: Taxonomy, deployment: Mapping[str, str]) -> Taxonomy:
    """Merge the deployment's current categories, descriptions by name, into a scope's stored ones.

    A category that a user declared under the same name wins, and one that a user deleted stays away. One that the
    deployment dropped is removed.
    """
    declared = {category.name: category for category in stored.all() if category.declared}
    others = {name: text for name, text in deployment.items() if name not in declared and name not in stored.deleted}
    named = {}
    for name, text in others.items():
        before = stored.find(name) or Category(name=name, description=text)
        named[name] = before if before.description == text else before.model_copy(update={"description": text})
    return stored.model_copy(update={"categories": named | declared})


MAX_ANCHORS = 8
"""Number of anchors of a category: few enough to read at a glance."""

MIN_CHANGES, MIN_CHANGED_SHARE = 3, 0.2
"""Growth or shrinkage, as a number and as a share of the size then, that makes a summary outdated. After fewer changes
a new summary says the same in other words."""

MAX_SUMMARY_CHARS = 600
"""Maximum characters of a summary: about 150 tokens, affordable in a context for each of a few categories."""

MMR_LAMBDA = 0.7
"""The weight of similarity to the centroid against similarity to chosen anchors: the middle of the range that Carbonell
and Goldstein recommend for a summary (0.3 to 0.7 for variety, above for relevance)."""


def is_summary_due(category: Category, size: int) -> bool:
    """True if the summary must be rebuilt, as the category now has `size` members."""
    if size == 0 or not category.anchors:
        return size > 0 or category.size > 0 or len(category.anchors) > 0
    return abs(size - category.size) >= max(MIN_CHANGES, MIN_CHANGED_SHARE * category.size)


def select_anchors(vectors: Matrix, limit: int = MAX_ANCHORS) -> list[int]:
    """Return the rows of the anchors, most typical first; ties go to the first. `vectors` has shape (members, dim)."""
    if not len(vectors):
        return []
    unit = normalise_rows(vectors)
    relevance = unit @ normalise_rows(unit.mean(axis=0, keepdims=True))[0]
    chosen: list[int] = []
    redundancy = np.zeros(len(unit))
    for _ in range(min(limit, len(unit))):
        score = MMR_LAMBDA * relevance - (1 - MMR_LAMBDA) * redundancy
        score[chosen] = -np.inf
        best = int(np.argmax(score))
        chosen.append(best)
        redundancy = np.maximum(redundancy, unit @ unit[best])
    return chosen


def summary_of(texts: Iterable[str]) -> str | None:
    """Join the texts that fit into `MAX_SUMMARY_CHARS`, one a line; None without any.

    A first text that is too long is truncated.
    """
    lines: list[str] = []
    room = MAX_SUMMARY_CHARS
    for text in dict.fromkeys(" ".join(text.split()) for text in texts):
        if text and len(text) <= room:
            lines.append(text)
            room -= len(text) + 1
        elif text and not lines:
            return text[: MAX_SUMMARY_CHARS - 1].rstrip() + "…"
    return "\n".join(lines) or None


def is_current(category: Category, read: ReadMemory) -> bool:
    """True if all memories behind the category's summary and anchors are unchanged."""
    return all(_is_unchanged(category, memory_id, read) for memory_id in category.rests_on)


def visible_category(category: Category, read: ReadMemory) -> Category:
    """Return the category, reduced to its unchanged anchors and a summary of their texts if it is not current."""
    if is_current(category, read):
        return category
    current = {
        anchor: memory
        for anchor in category.anchors
        if _is_unchanged(category, anchor, read) and (memory := read(anchor))
    }
    return category.model_copy(
        update={
            "summary": summary_of(memory.text for memory in current.values()),
            "anchors": tuple(current),
            "rests_on": {anchor: category.rests_on[anchor] for anchor in current},
            "profile": None,
        }
    )


def _is_unchanged(category: Category, memory_id: str, read: ReadMemory) -> bool:
    memory = read(memory_id)
    expected_hash = category.rests_on.get(memory_id)
    if memory is None or not memory.visibility.searchable:
        return False
    return memory.superseded_by is None and memory.content_hash == expected_hash


MAX_SHOWN_ITEMS = 100
"""Items listed under a category, newest first; `size` counts all of them."""


def build_category_view(category: Category, size: int) -> dict[str, Any]:
    """Return the fields of a category shown by every command."""
    return {
        "name": category.name,
        "description": category.description,
        "version": category.version,
        "size": size,
        "declared": category.declared,
    }


def category_text(category: Category) -> str:
    """Return the text that a query is compared with: name, description and summary."""
    return "\n".join((category.name, category.description, category.summary or ""))


def build_item_views(memories: Iterable[Memory], name: str) -> list[dict[str, Any]]:
    """Return the items as they are listed under the category `name`."""
    views: list[dict[str, Any]] = []
    for memory in memories:
        assignments = memory.item.categories if memory.item else ()
        confidence = next((assignment.confidence for assignment in assignments if assignment.name == name), None)
        fields = {"memory_id": memory.memory_id, "type": memory.type, "mode": memory.mode, "text": memory.text}
        views.append({**fields, "confidence": confidence})
    return views


def _groups(unit: Matrix, rows: Rows, min_cosine: float) -> list[list[int]]:
    """Return groups of these rows, the largest first, the most typical member of each first."""
    sample = np.array(rows, np.int64)[:: max(1, -(-len(rows) // MAX_CLUSTERED))]
    groups = []
    for members in cluster_by_average_linkage(unit[sample], min_cosine):
        if len(members) >= MIN_GROUP_ITEMS:
            group = sample[members]
            typical_first = np.argsort(-(unit[group] @ unit[group].mean(axis=0)), kind="stable")
            groups.append(group[typical_first].tolist())
    return groups


def _merges(unit: Matrix, filed: Mapping[str, Rows], min_cosine: float) -> Iterator[tuple[str, str]]:
    """Yield the pairs, the larger one first. Categories that are equal in size come in the order of their names."""
    # The product of two means is the mean cosine over all pairs of their rows.
    means = {name: unit[list(rows)].mean(axis=0) for name, rows in filed.items()}
    for larger, smaller in combinations(sorted(filed, key=lambda name: (-len(filed[name]), name)), 2):
        if float(means[larger] @ means[smaller]) >= min_cosine:
            yield larger, smaller


def _splits(unit: Matrix, filed: Mapping[str, Rows], min_cosine: float) -> Iterator[tuple[str, list[list[int]]]]:
    for name in sorted(filed):
        rows = filed[name]
        groups = _groups(unit, rows, min_cosine)
        clustered = min(len(rows), MAX_CLUSTERED)
        if len(groups) > 1 and sum(map(len, groups)) >= MIN_SPLIT_SHARE * clustered:
            yield name, groups
