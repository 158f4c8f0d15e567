"""The keeper of categories: the only writer of the table `categories`.

Commands come in that declare, list and show categories, and what was found in turns; categories leave. Guaranteed: the
same command again changes nothing; what is shown rests on memories that are there. A declaration that puts items
under other categories leaves as a `Change` and is answered when that is carried out.
"""

from collections.abc import Mapping
from itertools import islice

from agents.categories.matching import CategoryMatcher
from agents.categories.members import CategoryMembers
from agents.categories.refresh import RefreshCategories
from agents.ports.categories import CategoryWriter
from agents.ports.command_types import CommandResult, ResultBody, parse_arguments
from agents.ports.consolidation_run import UNBOUNDED, Allowance
from agents.ports.stores import Memories
from agents.rules.categories.taxonomy import declare_category
from agents.rules.categories.view import MAX_SHOWN_ITEMS, build_category_view, build_item_views
from agents.rules.categories.visibility import visible_category
from schemas.categories import Category
from schemas.changes import Change
from schemas.commands import Command, DeclareCategory, GetCategory, ListCategories
from schemas.events import Learned
from schemas.failures import Rejected, Unavailable
from schemas.memories import CategoryAssignment

MAX_ASSIGNED_ITEMS = 20_000
"""Items that one declaration puts under other categories: a `Change` of some 3 MB, as one record. The others are in the
next consolidation."""

ScopeFields = Mapping[str, str]


class Categorize:
    """Commands and what was found in turns in; categories out."""

    def __init__(
        self,
        categories: CategoryWriter,
        memories: Memories,
        members: CategoryMembers,
        fits: CategoryMatcher,
        refreshing: RefreshCategories,
    ) -> None:
        """Take the ports, and those who find and sum up."""
        self._categories = categories
        self._memories = memories
        self._members = members
        self._fits = fits
        self._refreshing = refreshing

    def learned(self, event: Learned) -> None:
        """Remove what rests on something that is not there any more."""
        self._refreshing.clear(event.scope)

    def before_forgetting(self, command: Command, _offset: int) -> None:
        """Remove all summaries and anchors of a project, or of all of a user's, before it is forgotten.

        What was declared stays: it is a setting, as modes are.
        """
        scope, boundary = command.scope.model_dump(), command.scope.boundary
        whole_user = command.arguments.get("user") is True
        for each in self._members.scopes(boundary) if whole_user else [scope]:
            self._refreshing.clear(each, whole=True)

    async def refresh(
        self, scope: ScopeFields, *, ask_model: bool = True, allowance: Allowance = UNBOUNDED
    ) -> list[Category]:
        """Make summaries and anchors anew that are due; returns the categories that read otherwise than before."""
        return await self._refreshing.refresh(scope, ask_model=ask_model, allowance=allowance)

    async def reassigned(self, scope: ScopeFields) -> dict[str, tuple[CategoryAssignment, ...]]:
        """By id the items that belong under other categories than they are under, with all that they belong under.

        They are put there by a `Change` that assigns. Raises Unavailable.
        """
        return await self._fits.reassignments(scope)

    async def declare_category(self, command: Command, _offset: int) -> CommandResult:
        """Declare or describe a category; may leave a change that assigns items."""
        wanted, scope = parse_arguments(DeclareCategory, command), command.scope.model_dump()
        before = self._categories.get(scope)
        kept = before.find(wanted.name)
        description = wanted.description if wanted.description is not None else kept.description if kept else ""
        after = declare_category(before, wanted.name, description)
        if after != before:
            # Before any await: an item that gets its vector from now on is held against it, too.
            self._categories.put(scope, after)
        # Also where nothing is new: it may come again after a worker was killed.
        assigned = await self._reassigned(scope)
        result = build_category_view(after.categories[wanted.name], self._size(wanted.name, scope, assigned))
        if not assigned:
            return CommandResult(result)
        return CommandResult(result, Change(scope=command.scope, action="assign", assigned=assigned, result=result))

    async def list_categories(self, command: Command, _offset: int) -> CommandResult:
        """List the categories of a scope."""
        wanted, scope = parse_arguments(ListCategories, command), command.scope.model_dump()
        if wanted.include_summary:
            await self._refreshing.refresh(scope)
        taxonomy = self._categories.get(scope)
        names = sorted(taxonomy.categories)
        members = self._members.of(scope, names)
        shown = []
        for category in taxonomy.all():
            ids = members[category.name]
            one = build_category_view(category, len(ids))
            if wanted.include_summary:
                one["summary"] = self._standing(category).summary
            if wanted.include_items:
                one["items"] = self._items(category.name, ids)
            shown.append(one)
        uncategorised = self._members.uncategorised(scope, names)
        return CommandResult({"categories": shown, "uncategorised": uncategorised})

    async def get_category(self, command: Command, _offset: int) -> CommandResult:
        """Show a category with its summary, anchors and items."""
        wanted, scope = parse_arguments(GetCategory, command), command.scope.model_dump()
        if self._categories.get(scope).find(wanted.name) is not None:
            await self._refreshing.refresh(scope)
        category = self._categories.get(scope).find(wanted.name)
        if category is None:
            raise Rejected("not_found", "this scope has no category of that name", "arguments.name")
        category = self._standing(category)
        ids = self._members.of(scope, [category.name])[category.name]
        texts = {
            "summary": category.summary,
            "anchors": self._items(category.name, category.anchors),
            "items": self._items(category.name, ids),
        }
        return CommandResult(build_category_view(category, len(ids)) | texts)

    async def _reassigned(self, scope: ScopeFields) -> dict[str, tuple[CategoryAssignment, ...]]:
        """What a declaration changes now; what can't be looked at now is in the next consolidation."""
        try:
            found = await self._fits.reassignments(scope)
            return dict(islice(found.items(), MAX_ASSIGNED_ITEMS))
        except Unavailable:
            return {}

    def _size(self, name: str, scope: ScopeFields, assigned: Mapping[str, tuple[CategoryAssignment, ...]]) -> int:
        """How many members a category has when these items are under what they belong under."""
        now = set(self._members.of(scope, [name])[name]) - assigned.keys()
        return len(now) + sum(any(one.name == name for one in some) for some in assigned.values())

    def _standing(self, category: Category) -> Category:
        return visible_category(category, self._memories.get)

    def _items(self, name: str, ids: tuple[str, ...] | list[str]) -> list[ResultBody]:
        read = (self._memories.get(one) for one in ids[:MAX_SHOWN_ITEMS])
        return build_item_views(
            [memory for memory in read if memory is not None and memory.superseded_by is None], name
        )
