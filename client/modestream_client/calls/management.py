"""Calls that manage a deployment: modes, categories and intention, consolidations, jobs, health, run records."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Unpack

from modestream_client import operations as rows
from modestream_client.answers import parse_as
from modestream_client.calls.session import CallOptions, Session
from modestream_client.operations import COMMANDS, CONSOLIDATE, HEALTH, LIST_RUNS, REFRESH
from modestream_client.results import (
    CategorySuggestions,
    Consolidation,
    DeclaredModes,
    DefaultModes,
    DeletedMode,
    FinishedJob,
    FinishedRefresh,
    ModeSuggestions,
    ServiceHealth,
    ShownCategories,
    ShownCategory,
    ShownIntention,
    ShownMode,
)
from modestream_client.runs import Pipeline, RunList
from modestream_client.vocabulary import ModeDecay, PromptedStep

Job = Literal["backfill", "rebuild", "reconcile", "retry_failed"]


class ManagementCalls(Session):
    """Calls for modes, categories, intention, jobs and health.

    Long runs need a longer `timeout`; after a timeout they still continue.
    """

    async def declare_mode(
        self,
        name: str,
        embedder: str,
        *,
        description: str | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        extraction_hints: str | None = None,
        prompt_overrides: Mapping[PromptedStep, str] | None = None,
        decay: ModeDecay | None = None,
        searchable: bool | None = None,
        private: bool | None = None,
        is_default: bool = False,
        for_project: bool = False,
        keep_former: bool = True,
        **options: Unpack[CallOptions],
    ) -> ShownMode:
        """Declare a mode, or change the given fields of an existing one.

        `embedder` is a preset or a configured name; a change re-embeds the mode's memories, which are found by the
        vectors of the former embedder until then, and keeps these vectors: without `keep_former` they are removed. With
        `for_project` the mode and its default hold in this project alone. No search finds the memories of a mode that
        is not `searchable`, and no language model of the service reads those of a `private` one. `decay` holds for all
        of its memories, or is given by type. `prompt_overrides` are added to the prompts that a language model is asked
        with about its memories, by step.

        >>> (await memory.declare_mode("journal", "general", decay="slow")).decay
        'slow'
        """
        arguments = {
            "name": name,
            "embedder": embedder,
            "description": description,
            "query_prefix": query_prefix,
            "passage_prefix": passage_prefix,
            "extraction_hints": extraction_hints,
            "prompt_overrides": prompt_overrides,
            "decay": decay,
            "is_default": is_default,
            "for_project": for_project,
            **({} if keep_former else {"keep_former": False}),
            **{name: flag for name, flag in (("searchable", searchable), ("private", private)) if flag is not None},
        }
        return await self._run(rows.DECLARE_MODE, arguments, **options)

    async def list_modes(self, **options: Unpack[CallOptions]) -> DeclaredModes:
        """Return the modes visible in a project; every user has `general`.

        >>> [mode.name for mode in (await memory.list_modes()).modes]
        ['general']
        """
        return await self._run(rows.LIST_MODES, **options)

    async def rename_mode(self, name: str, new_name: str, **options: Unpack[CallOptions]) -> ShownMode:
        """Rename a mode; its memories follow.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> (await memory.rename_mode("journal", "diary")).name
        'diary'
        """
        return await self._run(rows.RENAME_MODE, {"name": name, "new_name": new_name}, **options)

    async def delete_mode(self, name: str, memories: str, **options: Unpack[CallOptions]) -> DeletedMode:
        """Delete a mode. `memories` decides about its memories: `"forget"`, or `"move:<mode>"`.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> _ = await memory.remember("I was afraid of the move.", mode="journal")
        >>> (await memory.delete_mode("journal", "move:general")).moved
        1
        """
        arguments = {"name": name, "memories": memories}
        return await self._run(rows.DELETE_MODE, arguments, **options)

    async def set_default_mode(
        self, name: str | None, *, for_project: bool = False, **options: Unpack[CallOptions]
    ) -> DefaultModes:
        """Set the mode of turns sent without one, for the user or for this project alone; None clears it.

        >>> _ = await memory.declare_mode("journal", "general")
        >>> (await memory.set_default_mode("journal")).user_default
        'journal'
        """
        arguments = {"name": name, "for_project": for_project}
        return await self._run(rows.SET_DEFAULT_MODE, arguments, **options)

    async def suggest_modes(self, **options: Unpack[CallOptions]) -> ModeSuggestions:
        """Return groups of turns that fit no declared mode; changes nothing.

        >>> (await memory.suggest_modes()).suggestions
        ()
        """
        return await self._run(rows.SUGGEST_MODES, **options)

    async def declare_category(
        self, name: str, description: str | None = None, **options: Unpack[CallOptions]
    ) -> ShownCategory:
        """Declare a category of this project, or change its description.

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

    async def suggest_categories(self, **options: Unpack[CallOptions]) -> CategorySuggestions:
        """Return groups of this project's items in no category, and merges and splits of its categories.

        Changes nothing.

        >>> (await memory.suggest_categories()).suggestions
        ()
        """
        return await self._run(rows.SUGGEST_CATEGORIES, **options)

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
        """Set goals and constraints of this project, in addition to those from turns; None leaves a list unchanged.

        >>> intention = await memory.set_intention(goals=["ship the beta"])
        >>> [goal.text for goal in intention.goals]
        ['ship the beta']
        """
        arguments = {"goals": goals, "constraints": constraints}
        return await self._run(rows.SET_INTENTION, arguments, **options)

    async def consolidate(self, mode: str | None = None, **options: Unpack[CallOptions]) -> Consolidation:
        """Distil repeated memories of this project in one mode, or in each mode separately. Idempotent.

        >>> for day in ("Monday", "Tuesday", "Wednesday"):
        ...     _ = await memory.remember(f"Watered the tomatoes in the greenhouse on {day}, they look healthy.")
        >>> len((await memory.consolidate(timeout=30)).created)
        1
        """
        scope = self._scope(options.get("user_id"), options.get("project_id"))
        record = CONSOLIDATE.record_of(scope, {"mode": mode})
        reply = await self._ask(CONSOLIDATE.topic, record, options.get("principal"), options.get("timeout"))
        return parse_as(CONSOLIDATE.result, reply.result)

    async def run_job(
        self, job: Job, *, mode: str | None = None, all_projects: bool = False, **options: Unpack[CallOptions]
    ) -> FinishedJob:
        """Rebuild vectors, of one mode or all, in this project or all projects; return when it is done.

        `backfill`: of memories without a current vector; `rebuild`: of all; `reconcile`: what the index lacks or should
        not have; `retry_failed`: of those that failed.

        >>> _ = await memory.remember("The kettle is blue.")
        >>> (await memory.run_job("rebuild")).processed
        1
        """
        arguments = {"mode": mode, "all_projects": all_projects}
        done: FinishedJob = await self._run(COMMANDS[job], arguments, **options)
        return done

    async def refresh(
        self,
        *,
        mode: str | None = None,
        all_projects: bool = False,
        before_revision: int | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        **options: Unpack[CallOptions],
    ) -> FinishedRefresh:
        """Repeat the understanding of turns done by rules, or by an earlier profile or prompt.

        With `before_revision`, turns understood by earlier revisions too. Repeat the call until `remaining` is 0.

        >>> _ = await memory.remember("The kettle is blue.")
        >>> (await memory.refresh()).remaining
        0
        """
        asked = {
            "mode": mode,
            "all_projects": all_projects,
            "before_revision": before_revision,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
        }
        return await self._run(REFRESH, asked, **options)

    async def health(self, **options: Unpack[CallOptions]) -> ServiceHealth:
        """Return the state of this user's vectors by mode, and of the deployment.

        >>> (await memory.health()).modes["general"].failed
        0
        """
        return await self._run(HEALTH, **options)

    async def list_runs(
        self,
        *,
        pipeline: Pipeline | None = None,
        failed: bool | None = None,
        since: datetime | str | None = None,
        memory_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> RunList:
        """Return the newest recorded runs of this user, in all projects that the caller may read.

        The service records all failed runs, and a configured share of the successful ones.

        >>> (await memory.list_runs(failed=True)).runs
        ()

        Parameters
        ----------
        pipeline
            `memorize`, `retrieve` or `evolve`; default: all.
        failed
            True: runs with a failure; False: those without one; default: both.
        since
            Runs that began at this time or later.
        memory_id
            The runs of one turn: accepted, embedded, understood.
        run_id
            One run.
        limit
            Maximum number, up to 200; default: 50.
        """
        arguments = {
            "pipeline": pipeline,
            "failed": failed,
            "since": since.isoformat() if isinstance(since, datetime) else since,
            "memory_id": memory_id,
            "run_id": run_id,
            "limit": limit,
        }
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self._run(LIST_RUNS, given, **options)
