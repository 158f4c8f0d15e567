"""The handler of every command of the table of operations: the method of its name of an agent."""

from collections.abc import Iterable
from functools import partial

from modestream_client.operations import COMMANDS, QUERY_COMMANDS

from agents.ports.commands import CommandHandler
from schemas.internal.changes import JOB_KINDS
from streams.partition_agents import PartitionAgents


def command_handlers(agents: PartitionAgents, names: Iterable[str] = COMMANDS) -> dict[str, CommandHandler]:
    """Return the handlers of commands by their names. Raises KeyError for a command that no agent handles."""
    handling = (
        agents.commands, agents.categorize, agents.intend, agents.suggest_modes, agents.suggest_categories,
        agents.show_job, agents.show_runs, agents.show_contexts, agents.show_files,
        agents.edit_pipelines,
    )  # fmt: skip
    methods = {name: getattr(agent, name) for agent in handling for name in COMMANDS if hasattr(agent, name)}
    clear = (agents.intend.before_forgetting, agents.categorize.before_forgetting)
    methods["forget"] = partial(agents.commands.forget, before=clear)
    methods |= dict.fromkeys(JOB_KINDS, agents.commands.start_job)
    return {name: methods[name] for name in names}


def query_handlers(agents: PartitionAgents) -> dict[str, CommandHandler]:
    """Return the handlers of the commands that only read."""
    return command_handlers(agents, QUERY_COMMANDS)
