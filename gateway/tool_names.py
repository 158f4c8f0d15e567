"""The names of the tools, for the setting that chooses among them."""

USUAL_TOOLS = (
    "search_memory", "add_memory", "list_memories", "get_memory", "delete_memory", "list_modes", "set_memory_mode",
    "assemble_context",
)  # fmt: skip
"""Served unless the setting says otherwise. No tool forgets more than one memory."""

MORE_TOOLS = ("declare_mode", "get_intention", "set_intention", "health")
"""Served only if the setting names them: each tool costs tokens in every conversation."""
