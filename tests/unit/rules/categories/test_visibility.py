"""Visible parts of a category after memories have changed, and the categories of a scope."""

import pytest

from agents.rules.categories.taxonomy import declare_category, merge_deployment_categories
from agents.rules.categories.view import is_current, visible_category
from schemas.state.categories import Category, Taxonomy
from schemas.state.memories import Memory
from tests.builders.memories import made

FIRST, SECOND, SUMMARISED = made("First.", 0), made("Second.", 1), made("Told.", 2)
CATEGORY = Category(
    name="x",
    summary="A model's words.",
    profile="default",
    anchors=(FIRST.memory_id, SECOND.memory_id),
    rests_on={one.memory_id: one.content_hash for one in (FIRST, SECOND, SUMMARISED)},
)


def by_id(*memories: Memory) -> dict[str, Memory]:
    return {one.memory_id: one for one in memories}


def test_category_is_current_while_its_memories_are_unchanged() -> None:
    read = by_id(FIRST, SECOND, SUMMARISED).get
    assert is_current(CATEGORY, read)
    assert visible_category(CATEGORY, read) is CATEGORY


@pytest.mark.parametrize("change", ["gone", "superseded", "replaced"])
def test_changed_anchor_leaves_the_other_anchors(change: str) -> None:
    changed = {
        "gone": (),
        "superseded": (FIRST.model_copy(update={"superseded_by": "x"}),),
        "replaced": (FIRST.model_copy(update={"content_hash": "another"}),),
    }[change]
    left = visible_category(CATEGORY, by_id(*changed, SECOND, SUMMARISED).get)
    assert (left.summary, left.anchors, left.profile) == ("Second.", (SECOND.memory_id,), None)
    assert set(left.rests_on) == {SECOND.memory_id}


def test_models_summary_is_replaced_when_a_source_is_gone() -> None:
    left = visible_category(CATEGORY, by_id(FIRST, SECOND).get)
    assert (left.summary, left.anchors) == ("First.\nSecond.", CATEGORY.anchors)


def test_category_without_memories_is_empty() -> None:
    left = visible_category(CATEGORY, by_id().get)
    assert (left.summary, left.anchors, left.rests_on) == (None, (), {})


def test_redeclared_category_keeps_its_summary() -> None:
    once = declare_category(Taxonomy(), "x", "some")
    assert declare_category(once, "x", "some") is once
    summed_up = once.with_categories(once.categories["x"].model_copy(update={"summary": "Sum."}))
    again = declare_category(summed_up, "x", "other").categories["x"]
    assert (again.description, again.summary, again.version, again.declared) == ("other", "Sum.", 2, True)


def test_deployment_categories_are_merged_into_a_users_own() -> None:
    kept = Taxonomy().with_categories(
        Category(name="own", description="mine", declared=True),
        Category(name="both", description="mine", declared=True),
        Category(name="named", description="yesterday", summary="Sum."),
        Category(name="dropped", summary="Sum."),
    )
    merged = merge_deployment_categories(kept, {"named": "today", "new": "fresh", "both": "theirs"})
    described = [(one.name, one.description, one.summary) for one in merged.all()]
    assert described == [
        ("both", "mine", None),
        ("named", "today", "Sum."),
        ("new", "fresh", None),
        ("own", "mine", None),
    ]


def test_user_can_declare_a_deployment_category() -> None:
    taxonomy = declare_category(merge_deployment_categories(Taxonomy(), {"x": "some"}), "x", "some")
    assert (taxonomy.categories["x"].declared, taxonomy.categories["x"].version) == (True, 1)
