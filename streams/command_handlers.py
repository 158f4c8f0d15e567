"""Every command, and the agent that handles it."""

from functools import partial

from modestream_client.vocabulary import QUERY_COMMANDS

from agents.ports.command_types import CommandHandler
from schemas.internal.changes import JOB_KINDS
from streams.partition_agents import PartitionAgents


def command_handlers(agents: PartitionAgents) -> dict[str, CommandHandler]:
    """Every command, and the agent that handles it."""
    commands, intend, categorize = agents.commands, agents.intend, agents.categorize
    pipelines = agents.edit_pipelines
    clear = (intend.before_forgetting, categorize.before_forgetting)
    return {
        "declare_mode": commands.declare_mode,
        "rename_mode": commands.rename_mode,
        "delete_mode": commands.delete_mode,
        "set_default_mode": commands.set_default_mode,
        "list_modes": commands.list_modes,
        "set_memory_mode": commands.set_memory_mode,
        "set_memory_visibility": commands.set_memory_visibility,
        "set_interaction_mode": commands.set_interaction_mode,
        "suggest_modes": agents.suggest_modes.suggest_modes,
        "get_memory": commands.get_memory,
        "get_job": agents.show_job,
        "list_runs": agents.show_runs,
        "forget": partial(commands.forget, before=clear),
        "declare_category": categorize.declare_category,
        "list_categories": categorize.list_categories,
        "get_category": categorize.get_category,
        "rename_category": categorize.rename_category,
        "delete_category": categorize.delete_category,
        "get_intention": intend.get_intention,
        "set_intention": intend.set_intention,
        **dict.fromkeys(JOB_KINDS, commands.start_job),
        "health": commands.show_health,
        "get_pipeline": pipelines.get_pipeline,
        "list_revisions": pipelines.list_revisions,
        "edit_pipeline": pipelines.edit_pipeline,
        "rollback_pipeline": pipelines.rollback_pipeline,
    }


def query_handlers(agents: PartitionAgents) -> dict[str, CommandHandler]:
    """Every command that only reads, and the agent that handles it."""
    return {name: handler for name, handler in command_handlers(agents).items() if name in QUERY_COMMANDS}
