"""What of a category may be shown after memories have changed, and which categories a scope has."""

import pytest

from agents.rules.categories.taxonomy import declare_category, merge_deployment_categories
from agents.rules.categories.visibility import is_current, visible_category
from schemas.categories import Category, Taxonomy
from schemas.memories import Memory
from tests.builders.memories import made

FIRST, SECOND, TOLD = made("First.", 0), made("Second.", 1), made("Told.", 2)
CATEGORY = Category(
    name="x",
    summary="A model's words.",
    profile="default",
    anchors=(FIRST.memory_id, SECOND.memory_id),
    rests_on={one.memory_id: one.content_hash for one in (FIRST, SECOND, TOLD)},
)


def there(*memories: Memory) -> dict[str, Memory]:
    return {one.memory_id: one for one in memories}


def test_a_category_stands_while_all_it_rests_on_does() -> None:
    read = there(FIRST, SECOND, TOLD).get
    assert is_current(CATEGORY, read)
    assert visible_category(CATEGORY, read) is CATEGORY


@pytest.mark.parametrize("change", ["gone", "superseded", "replaced"])
def test_without_an_anchor_it_is_what_the_others_say(change: str) -> None:
    changed = {
        "gone": (),
        "superseded": (FIRST.model_copy(update={"superseded_by": "x"}),),
        "replaced": (FIRST.model_copy(update={"content_hash": "another"}),),
    }[change]
    left = visible_category(CATEGORY, there(*changed, SECOND, TOLD).get)
    assert (left.summary, left.anchors, left.profile) == ("Second.", (SECOND.memory_id,), None)
    assert set(left.rests_on) == {SECOND.memory_id}


def test_a_models_summary_goes_with_anything_that_the_model_was_told() -> None:
    left = visible_category(CATEGORY, there(FIRST, SECOND).get)
    assert (left.summary, left.anchors) == ("First.\nSecond.", CATEGORY.anchors)


def test_of_nothing_nothing_is_left() -> None:
    left = visible_category(CATEGORY, there().get)
    assert (left.summary, left.anchors, left.rests_on) == (None, (), {})


def test_what_is_declared_again_keeps_its_texts_and_counts_its_descriptions() -> None:
    once = declare_category(Taxonomy(), "x", "some")
    assert declare_category(once, "x", "some") is once
    summed_up = once.with_categories(once.categories["x"].model_copy(update={"summary": "Sum."}))
    again = declare_category(summed_up, "x", "other").categories["x"]
    assert (again.description, again.summary, again.version, again.declared) == ("other", "Sum.", 2, True)


def test_a_deployments_categories_are_as_it_names_them_today_and_a_users_own_stay() -> None:
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


def test_a_user_may_take_over_a_category_of_the_deployment_as_it_is() -> None:
    taxonomy = declare_category(merge_deployment_categories(Taxonomy(), {"x": "some"}), "x", "some")
    assert (taxonomy.categories["x"].declared, taxonomy.categories["x"].version) == (True, 1)
