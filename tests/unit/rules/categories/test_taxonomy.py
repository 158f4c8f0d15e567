"""Declaring, renaming, deleting and forgetting categories of a scope."""

import pytest

from agents.rules.categories.assignment import rename_assignments
from agents.rules.categories.taxonomy import (
    MAX_FORMER_NAMES,
    declare_category,
    delete_category,
    forget_categories,
    merge_deployment_categories,
    rename_category,
)
from schemas.failures import Rejected
from schemas.state.categories import MAX_DELETED_NAMES, Category, Taxonomy
from schemas.state.memories import CategoryAssignment

DEPLOYMENT = {"travel": "trips"}


def declared(*names: str, offset: int = 1) -> Taxonomy:
    """Return a taxonomy with these categories."""
    taxonomy = Taxonomy()
    for name in names:
        taxonomy = declare_category(taxonomy, name, f"about {name}", offset)
    return taxonomy


def names(taxonomy: Taxonomy) -> list[str]:
    return [one.name for one in taxonomy.all()]


def code_of(refused: pytest.ExceptionInfo[Rejected]) -> tuple[str, str | None]:
    return refused.value.code, refused.value.field


def test_renamed_category_keeps_its_description_and_its_former_names() -> None:
    taxonomy, _ = rename_category(declared("a"), "a", "b", 2)
    taxonomy, category = rename_category(taxonomy, "b", "c", 3)
    assert (category.name, category.description, category.formerly) == ("c", "about a", ("a", "b"))
    assert (names(taxonomy), category.version) == (["c"], 3)


def test_category_renamed_back_has_its_name_no_longer_as_a_former_one() -> None:
    taxonomy, _ = rename_category(declared("a"), "a", "b", 2)
    taxonomy, category = rename_category(taxonomy, "b", "a", 3)
    assert (names(taxonomy), category.formerly) == (["a"], ("b",))
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
    assert (names(taxonomy), category.description) == (["b"], "about a")
    again, category = delete_category(taxonomy, "a", 7)
    assert (again, category.name) == (taxonomy, "a")
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
    assert (names(left), left.deleted) == (["late"], {"travel": 10})
    assert forget_categories(taxonomy, 10) == Taxonomy()


def test_category_stored_before_it_had_an_offset_is_forgotten() -> None:
    stored = Taxonomy.model_validate({"categories": {"a": {"name": "a", "declared": True}}})
    assert forget_categories(stored, 0) == Taxonomy()


def test_assignments_follow_renamed_categories_and_drop_deleted_ones() -> None:
    taxonomy, _ = rename_category(declared("a", "b", "c"), "a", "x", 2)
    taxonomy, _ = delete_category(taxonomy, "b", 3)
    before = [CategoryAssignment(name=name, confidence=0.9) for name in ("a", "b", "c", "never")]
    assert [one.name for one in rename_assignments(before, taxonomy)] == ["c", "x"]


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
    assert [one.name for one in rename_assignments([CategoryAssignment(name="a", confidence=0.9)], taxonomy)] == ["c"]
