"""Handle category commands and `Learned` events: the only writer of the table `categories`.

Idempotent. Views contain only what derives from existing memories. A command that changes the categories of items
leaves a `Change` and is answered when that has been applied.
"""

from dataclasses import dataclass
from itertools import chain, islice

from modestream_client.arguments import DeclareCategory, DeleteCategory, GetCategory, ListCategories, RenameCategory

from agents.categories.matching import CategoryMatcher, CategoryMembers
from agents.categories.refresh import RefreshCategories
from agents.ports.commands import UNBOUNDED, Allowance, CommandResult, ResultBody, parse_arguments
from agents.ports.stores import CategoryWriter, Memories
from agents.rules.categories.taxonomy import (
    MAX_SHOWN_ITEMS,
    build_category_view,
    build_item_views,
    declare_category,
    delete_category,
    forget_categories,
    rename_category,
    unknown_category_error,
    visible_category,
)
from schemas.failures import Unavailable
from schemas.internal.changes import Change
from schemas.internal.events import Learned
from schemas.messages.commands import Command
from schemas.scopes import ScopeFields
from schemas.state.categories import Category
from schemas.state.memories import CategoryAssignment

MAX_ASSIGNED_ITEMS = 20_000
"""Maximum items that one declaration reassigns (about 3 MB of memory); the next consolidation does the rest."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Categorize:
    """Commands and `Learned` events in; categories out."""

    categories: CategoryWriter
    memories: Memories
    members: CategoryMembers
    matcher: CategoryMatcher
    refresher: RefreshCategories

    def learned(self, event: Learned) -> None:
        """Remove summaries and anchors that derive from forgotten memories."""
        self.refresher.clear(event.scope)

    def before_forgetting(self, command: Command, offset: int) -> None:
        """Remove the categories of a project, or of all projects of a user, before it is forgotten.

        Those of later commands stay, also if this command is redelivered.
        """
        whole_user = command.arguments.get("user") is True
        scopes = self.categories.scopes(command.scope.boundary) if whole_user else [command.scope.model_dump()]
        for each in scopes:
            self.categories.put(each, forget_categories(self.categories.get(each), offset))

    async def refresh(
        self, scope: ScopeFields, *, ask_model: bool = True, allowance: Allowance = UNBOUNDED
    ) -> list[Category]:
        """Refresh due summaries and anchors; return the categories with a changed text."""
        return await self.refresher.refresh(scope, ask_model=ask_model, allowance=allowance)

    async def reassigned(self, scope: ScopeFields) -> dict[str, tuple[CategoryAssignment, ...]]:
        """Return new categories by item id for a `Change`, changed ones alone. Raises Unavailable."""
        return await self.matcher.reassignments(scope)

    async def declare_category(self, command: Command, offset: int) -> CommandResult:
        """Declare or describe a category; may leave a change that assigns items."""
        wanted, scope = parse_arguments(DeclareCategory, command), command.scope.model_dump()
        before = self.categories.get(scope)
        declared = before.find(wanted.name)
        description = wanted.description if wanted.description is not None else declared.description if declared else ""
        after = declare_category(before, wanted.name, description, offset)
        if after != before:
            # Before any await: items that get their vector from now on are matched against it, too.
            self.categories.put(scope, after)
        # Also if nothing is new: the command may have been redelivered after a crash.
        assigned = await self.due_assignments(scope)
        unchanged = set(self.members.of(scope, [wanted.name])[wanted.name]) - assigned.keys()
        gained = sum(any(each.name == wanted.name for each in assignments) for assignments in assigned.values())
        result = build_category_view(after.categories[wanted.name], len(unchanged) + gained)
        if not assigned:
            return CommandResult(result)
        return CommandResult(result, Change(scope=command.scope, action="assign", assigned=assigned, result=result))

    async def rename_category(self, command: Command, offset: int) -> CommandResult:
        """Rename a category; leaves a change by which its items follow."""
        wanted, scope = parse_arguments(RenameCategory, command), command.scope.model_dump()
        before = self.categories.get(scope)
        after, category = rename_category(before, wanted.name, wanted.new_name, offset)
        if after != before:
            self.categories.put(scope, after)
        return self._refiled(command, category, (wanted.name, category.name))

    async def delete_category(self, command: Command, offset: int) -> CommandResult:
        """Delete a category; leaves a change by which its items leave it. Shows the category as it was."""
        wanted, scope = parse_arguments(DeleteCategory, command), command.scope.model_dump()
        before = self.categories.get(scope)
        after, category = delete_category(before, wanted.name, offset)
        if after != before:
            self.categories.put(scope, after)
        return self._refiled(command, category, (category.name, *category.formerly))

    async def list_categories(self, command: Command, _offset: int) -> CommandResult:
        wanted, scope = parse_arguments(ListCategories, command), command.scope.model_dump()
        if wanted.include_summary:
            await self.refresher.refresh(scope)
        taxonomy = self.categories.get(scope)
        names = sorted(taxonomy.categories)
        members = self.members.of(scope, names)
        shown = []
        for category in taxonomy.all():
            ids = members[category.name]
            view = build_category_view(category, len(ids))
            if wanted.include_summary:
                view["summary"] = self._visible(category).summary
            if wanted.include_items:
                view["items"] = self._items(category.name, ids)
            shown.append(view)
        uncategorised = self.members.uncategorised(scope, names)
        return CommandResult({"categories": shown, "uncategorised": uncategorised})

    async def get_category(self, command: Command, _offset: int) -> CommandResult:
        """Show a category with its summary, anchors and items."""
        wanted, scope = parse_arguments(GetCategory, command), command.scope.model_dump()
        if self.categories.get(scope).find(wanted.name) is not None:
            await self.refresher.refresh(scope)
        category = self.categories.get(scope).find(wanted.name)
        if category is None:
            raise unknown_category_error()
        category = self._visible(category)
        ids = self.members.of(scope, [category.name])[category.name]
        texts = {
            "summary": category.summary,
            "anchors": self._items(category.name, category.anchors),
            "items": self._items(category.name, ids),
        }
        return CommandResult(build_category_view(category, len(ids)) | texts)

    def _refiled(self, command: Command, category: Category, names: tuple[str, ...]) -> CommandResult:
        """Return the category, and the change that reassigns the items with these names.

        Also for a category without members: superseded items have categories, and are no members.
        """
        members = self.members.of(command.scope.model_dump(), names).values()
        result = build_category_view(category, len(set(chain.from_iterable(members))))
        return CommandResult(result, Change(scope=command.scope, action="refile", categories=names, result=result))

    async def due_assignments(self, scope: ScopeFields) -> dict[str, tuple[CategoryAssignment, ...]]:
        """Return what a declaration changes now; while the index is unavailable, the next consolidation does it."""
        try:
            assigned = await self.matcher.reassignments(scope)
            return dict(islice(assigned.items(), MAX_ASSIGNED_ITEMS))
        except Unavailable:
            return {}

    def _visible(self, category: Category) -> Category:
        return visible_category(category, self.memories.get)

    def _items(self, name: str, ids: tuple[str, ...] | list[str]) -> list[ResultBody]:
        read = (self.memories.get(memory_id) for memory_id in ids[:MAX_SHOWN_ITEMS])
        return build_item_views(
            [memory for memory in read if memory is not None and memory.superseded_by is None], name
        )
