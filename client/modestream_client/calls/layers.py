"""Categories, and the user's intention."""

from collections.abc import Sequence
from typing import Unpack

from modestream_client import operations as rows
from modestream_client.calls.session import CallOptions, Session
from modestream_client.results import ShownCategories, ShownCategory, ShownIntention


class LayerCalls(Session):
    """A session that sees the layers above memories, and changes them."""

    async def declare_category(
        self, name: str, description: str | None = None, **options: Unpack[CallOptions]
    ) -> ShownCategory:
        """Declare a category of this project, or describe it anew.

        >>> (await memory.declare_category("hosting", "servers and deploys")).declared
        True
        """
        arguments = {"name": name, "description": description}
        return await self._run(rows.DECLARE_CATEGORY, arguments, **options)

    async def list_categories(
        self, *, include_summary: bool = False, include_items: bool = False, **options: Unpack[CallOptions]
    ) -> ShownCategories:
        """Return the categories of this project.

        >>> _ = await memory.declare_category("hosting")
        >>> [category.name for category in (await memory.list_categories()).categories]
        ['hosting']
        """
        arguments = {"include_summary": include_summary, "include_items": include_items}
        return await self._run(rows.LIST_CATEGORIES, arguments, **options)

    async def get_category(self, name: str, **options: Unpack[CallOptions]) -> ShownCategory:
        """Return a category with its summary, its most typical items and its latest ones."""
        return await self._run(rows.GET_CATEGORY, {"name": name}, **options)

    async def rename_category(self, name: str, new_name: str, **options: Unpack[CallOptions]) -> ShownCategory:
        """Rename a category; its items follow.

        >>> _ = await memory.declare_category("hosting")
        >>> (await memory.rename_category("hosting", "servers")).name
        'servers'
        """
        arguments = {"name": name, "new_name": new_name}
        return await self._run(rows.RENAME_CATEGORY, arguments, **options)

    async def delete_category(self, name: str, **options: Unpack[CallOptions]) -> ShownCategory:
        """Delete a category; its items stay, uncategorised. Returns it as it was."""
        return await self._run(rows.DELETE_CATEGORY, {"name": name}, **options)

    async def get_intention(self, **options: Unpack[CallOptions]) -> ShownIntention:
        """Return the user's goals, constraints, blocking errors and decisions in this project."""
        return await self._run(rows.GET_INTENTION, **options)

    async def set_intention(
        self,
        *,
        goals: Sequence[str] | None = None,
        constraints: Sequence[str] | None = None,
        **options: Unpack[CallOptions],
    ) -> ShownIntention:
        """Set goals and constraints of this project, beside what turns say; None leaves a list unchanged.

        >>> intention = await memory.set_intention(goals=["ship the beta"])
        >>> [goal.text for goal in intention.goals]
        ['ship the beta']
        """
        arguments = {"goals": goals, "constraints": constraints}
        return await self._run(rows.SET_INTENTION, arguments, **options)
