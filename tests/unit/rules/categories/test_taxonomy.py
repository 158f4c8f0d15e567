"""Declaring, renaming, deleting and forgetting categories of a scope."""

import numpy as np
import pytest

from agents.rules.categories.assignment import rename_assignments
from agents.rules.categories.taxonomy import (
    MAX_FORMER_NAMES,
    MAX_SUMMARY_CHARS,
    declare_category,
    delete_category,
    forget_categories,
    is_current,
    is_summary_due,
    merge_deployment_categories,
    rename_category,
    select_anchors,
    summary_of,
    visible_category,
)
from schemas.failures import Rejected
from schemas.models.vectors import Matrix
from schemas.state.categories import MAX_DELETED_NAMES, Category, Taxonomy
from schemas.state.memories import CategoryAssignment, Memory
from tests.builders.memories import made

DEPLOYMENT = {"travel": "trips"}


def declared(*names: str, offset: int = 1) -> Taxonomy:
    taxonomy = Taxonomy()
    for name in names:
        taxonomy = declare_category(taxonomy, name, f"about {name}", offset)
    return taxonomy


def names(taxonomy: Taxonomy) -> list[str]:
    return [category.name for category in taxonomy.all()]


def code_of(refused: pytest.ExceptionInfo[Rejected]) -> tuple[str, str | None]:
    return refused.value.code, refused.value.field


def test_renamed_category_keeps_its_description_and_its_former_names() -> None:
    taxonomy, _ = rename_category(declared("a"), "a", "b", 2)
    taxonomy, category = rename_category(taxonomy, "b", "c", 3)
    assert category.name == "c"
    assert category.description == "about a"
    assert category.formerly == ("a", "b")
    assert names(taxonomy) == ["c"]
    assert category.version == 3


def test_category_renamed_back_has_its_name_no_longer_as_a_former_one() -> None:
    taxonomy, _ = rename_category(declared("a"), "a", "b", 2)
    taxonomy, category = rename_category(taxonomy, "b", "a", 3)
    assert names(taxonomy) == ["a"]
    assert category.formerly == ("b",)
    assert "a" not in taxonomy.deleted


def test_former_names_are_limited_to_the_latest() -> None:
    taxonomy, category = declared("n0"), Category(name="n0")
    for number in range(MAX_FORMER_NAMES + 5):
        taxonomy, category = rename_category(taxonomy, f"n{number}", f"n{number + 1}", number)
    assert len(category.formerly) == MAX_FORMER_NAMES
    assert category.formerly[-1] == f"n{MAX_FORMER_NAMES + 4}"


def test_former_name_that_is_declared_again_is_a_conflict_at_the_next_rename() -> None:
    taxonomy, _ = rename_category(declared("a"), "a", "b", 2)
    taxonomy = declare_category(taxonomy, "a", "another", 3)
    with pytest.raises(Rejected) as refused:
        rename_category(taxonomy, "a", "b", 4)
    assert code_of(refused) == ("conflict", "arguments.new_name")


def test_redelivered_deletion_is_known_by_its_offset() -> None:
    taxonomy, category = delete_category(declared("a", "b"), "a", 7)
    assert names(taxonomy) == ["b"]
    assert category.description == "about a"
    again, category = delete_category(taxonomy, "a", 7)
    assert again == taxonomy
    assert category.name == "a"
    with pytest.raises(Rejected) as refused:
        delete_category(taxonomy, "a", 8)
    assert code_of(refused) == ("not_found", "arguments.name")


def test_deleted_names_are_limited_to_the_latest() -> None:
    taxonomy = Taxonomy()
    for number in range(MAX_DELETED_NAMES + 1):
        taxonomy = taxonomy.without(f"n{number}", number)
    assert len(taxonomy.deleted) == MAX_DELETED_NAMES
    assert "n0" not in taxonomy.deleted


def test_deployment_category_stays_deleted_until_it_is_declared() -> None:
    taxonomy = merge_deployment_categories(Taxonomy(), DEPLOYMENT)
    deleted, _ = delete_category(taxonomy, "travel", 1)
    assert names(merge_deployment_categories(deleted, DEPLOYMENT)) == []
    again = declare_category(deleted, "travel", "hotels", 2)
    assert names(merge_deployment_categories(again, DEPLOYMENT)) == ["travel"]
    assert again.deleted == {}


def test_forgetting_keeps_only_what_later_commands_did() -> None:
    taxonomy = declare_category(declared("early", "gone", offset=3), "late", "", 9)
    taxonomy, _ = delete_category(taxonomy, "gone", 4)
    taxonomy, _ = delete_category(merge_deployment_categories(taxonomy, DEPLOYMENT), "travel", 10)
    left = forget_categories(taxonomy, 8)
    assert names(left) == ["late"]
    assert left.deleted == {"travel": 10}
    assert forget_categories(taxonomy, 10) == Taxonomy()


def test_category_stored_before_it_had_an_offset_is_forgotten() -> None:
    stored = Taxonomy.model_validate({"categories": {"a": {"name": "a", "declared": True}}})
    assert forget_categories(stored, 0) == Taxonomy()


def test_assignments_follow_renamed_categories_and_drop_deleted_ones() -> None:
    taxonomy, _ = rename_category(declared("a", "b", "c"), "a", "x", 2)
    taxonomy, _ = delete_category(taxonomy, "b", 3)
    before = [CategoryAssignment(name=name, confidence=0.9) for name in ("a", "b", "c", "never")]
    assert [assignment.name for assignment in rename_assignments(before, taxonomy)] == ["c", "x"]


def test_assignment_to_the_old_and_the_new_name_is_one() -> None:
    taxonomy, _ = rename_category(declared("a"), "a", "x", 2)
    before = [CategoryAssignment(name="a", confidence=0.9), CategoryAssignment(name="x", confidence=0.6)]
    assert rename_assignments(before, taxonomy) == (CategoryAssignment(name="x", confidence=0.9),)


def test_name_that_is_used_anew_leads_to_no_other_category() -> None:
    taxonomy, _ = rename_category(declared("work"), "work", "job", 2)
    taxonomy = declare_category(taxonomy, "work", "anew", 3)
    taxonomy, _ = delete_category(taxonomy, "work", 4)
    item = CategoryAssignment(name="work", confidence=0.9)
    assert rename_assignments([item], taxonomy) == ()


def test_renamed_category_takes_its_name_along() -> None:
    taxonomy, _ = rename_category(declared("a"), "a", "b", 2)
    taxonomy = declare_category(taxonomy, "a", "anew", 3)
    taxonomy, _ = rename_category(taxonomy, "a", "c", 4)
    assert [
        assignment.name for assignment in rename_assignments([CategoryAssignment(name="a", confidence=0.9)], taxonomy)
    ] == ["c"]


def rows(*values: tuple[float, ...]) -> Matrix:
    return np.array(values, np.float32)


def test_anchors_are_typical_first_then_diverse() -> None:
    first, twin, other, outlier = (1.0, 0.1, 0), (1.0, 0.11, 0), (0.7, 0.8, 0), (0, 0, 1.0)
    chosen = select_anchors(rows(first, twin, other, outlier), 3)
    assert chosen[0] in (0, 1, 2)
    assert 2 in chosen[:2], "what says something else comes before what says the same"
    assert not {0, 1} <= set(chosen[:2])


def test_first_anchor_is_nearest_to_the_centroid() -> None:
    assert select_anchors(rows((1, 0.4), (1, 0), (1, -0.4)), 1) == [1]


def test_anchors_are_bounded_and_ignore_vector_length() -> None:
    some = rows((1, 0.2, 0), (0.2, 1, 0), (0.1, 0.2, 1))
    assert sorted(select_anchors(some, 8)) == [0, 1, 2]
    assert select_anchors(some * np.array([[9], [1], [4]], np.float32), 8) == select_anchors(some, 8)
    assert select_anchors(np.empty((0, 3), np.float32), 8) == []
    assert select_anchors(np.zeros((2, 3), np.float32), 8) == [0, 1]


def test_summary_joins_the_texts_that_fit() -> None:
    assert summary_of(["One.", "Two\n lines.", "One."]) == "One.\nTwo lines."
    long = ["a" * 300, "b" * 400, "c" * 100]
    assert summary_of(long) == f"{long[0]}\n{long[2]}"
    assert summary_of([]) is summary_of(["", "  "]) is None


def test_long_first_text_is_truncated() -> None:
    cut = summary_of(["word " * 300]) or ""
    assert len(cut) <= MAX_SUMMARY_CHARS
    assert cut.endswith("word…")


@pytest.mark.parametrize(
    ("size", "now", "due"),
    [
        *[(0, 0, False), (0, 1, True), (1, 0, True), (5, 7, False), (5, 8, True), (5, 2, True)],
        *[(100, 119, False), (100, 120, True), (100, 80, True)],
    ],
)
def test_summary_is_due_after_enough_changes(size: int, now: int, due: bool) -> None:
    anchors = ("a",) if size else ()
    assert is_summary_due(Category(name="x", size=size, anchors=anchors), now) is due


def test_summary_is_due_for_members_or_anchors_alone() -> None:
    assert is_summary_due(Category(name="x", size=5), 5)
    assert is_summary_due(Category(name="x", anchors=("a",)), 0)


FIRST, SECOND, SUMMARISED = made("First.", 0), made("Second.", 1), made("Told.", 2)
CATEGORY = Category(
    name="x",
    summary="A model's words.",
    profile="default",
    anchors=(FIRST.memory_id, SECOND.memory_id),
    rests_on={memory.memory_id: memory.content_hash for memory in (FIRST, SECOND, SUMMARISED)},
)


def by_id(*memories: Memory) -> dict[str, Memory]:
    return {memory.memory_id: memory for memory in memories}


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
    assert left.summary == "Second."
    assert left.anchors == (SECOND.memory_id,)
    assert left.profile is None
    assert set(left.rests_on) == {SECOND.memory_id}


def test_models_summary_is_replaced_when_a_source_is_gone() -> None:
    left = visible_category(CATEGORY, by_id(FIRST, SECOND).get)
    assert left.summary == "First.\nSecond."
    assert left.anchors == CATEGORY.anchors


def test_category_without_memories_is_empty() -> None:
    left = visible_category(CATEGORY, by_id().get)
    assert left.summary is None
    assert left.anchors == ()
    assert left.rests_on == {}


def test_redeclared_category_keeps_its_summary() -> None:
    once = declare_category(Taxonomy(), "x", "some")
    assert declare_category(once, "x", "some") is once
    summed_up = once.with_categories(once.categories["x"].model_copy(update={"summary": "Sum."}))
    again = declare_category(summed_up, "x", "other").categories["x"]
    assert again.description == "other"
    assert again.summary == "Sum."
    assert again.version == 2
    assert again.declared is True


def test_deployment_categories_are_merged_into_a_users_own() -> None:
    kept = Taxonomy().with_categories(
        Category(name="own", description="mine", declared=True),
        Category(name="both", description="mine", declared=True),
        Category(name="named", description="yesterday", summary="Sum."),
        Category(name="dropped", summary="Sum."),
    )
    merged = merge_deployment_categories(kept, {"named": "today", "new": "fresh", "both": "theirs"})
    described = [(category.name, category.description, category.summary) for category in merged.all()]
    assert described == [
        ("both", "mine", None),
        ("named", "today", "Sum."),
        ("new", "fresh", None),
        ("own", "mine", None),
    ]


def test_user_can_declare_a_deployment_category() -> None:
    taxonomy = declare_category(merge_deployment_categories(Taxonomy(), {"x": "some"}), "x", "some")
    assert taxonomy.categories["x"].declared
    assert taxonomy.categories["x"].version == 1
